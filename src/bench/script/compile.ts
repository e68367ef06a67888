/**
 * An expression as a function that computes it: the tree is walked once, not for every transaction.
 * Source followed: evaluateExpr, evalLazyFunc, evalStandardFunc in pgbench.c.
 */
import { type FunctionContext, functionOf } from './expression-functions.js'
import type { Expression } from './expression-parser.js'
import { isTrue, scriptFailure, toBoolean, type Value } from './value.js'

export interface EvaluationContext extends FunctionContext {
  /** Value of a variable; undefined when it was never set. */
  variable(name: string): Value | undefined
}

export type Computation = (context: EvaluationContext) => Value

/** AND stops at false, OR at true, and both are null as soon as they meet one. */
function connective([left, right]: readonly Computation[], stopsAt: boolean): Computation {
  return (context) => {
    const first = left!(context)
    if (first === null) return null
    if (toBoolean(first) === stopsAt) return stopsAt
    const second = right!(context)
    return second === null ? null : toBoolean(second)
  }
}

const caseOf =
  (parts: readonly Computation[]): Computation =>
  (context) => {
    for (let i = 0; i + 1 < parts.length; i += 2) {
      if (isTrue(parts[i]!(context))) return parts[i + 1]!(context)
    }
    return parts.at(-1)!(context)
  }

const variableOf =
  (name: string): Computation =>
  (context) => {
    const value = context.variable(name)
    if (value === undefined) throw scriptFailure(`undefined variable "${name}"`)
    return value
  }

export function compile(expression: Expression): Computation {
  if (expression.kind === 'constant') {
    const { value } = expression
    return () => value
  }
  const { name } = expression
  if (expression.kind === 'variable') return variableOf(name)
  const parts = expression.arguments.map(compile)
  if (name === '!and') return connective(parts, false)
  if (name === '!or') return connective(parts, true)
  if (name === '!case') return caseOf(parts)
  const apply = functionOf(name, parts.length)
  const [first, second] = parts
  // most calls have two arguments; all of them are computed before any is looked at
  if (parts.length === 2) return (context) => apply([first!(context), second!(context)], context)
  return (context) =>
    apply(
      parts.map((part) => part(context)),
      context,
    )
}

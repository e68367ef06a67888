/** The value of an expression for one client. Source followed: evaluateExpr, evalLazyFunc in pgbench.c. */
import { compute, type FunctionContext } from './expression-functions.js'
import type { Expression } from './expression-parser.js'
import { isTrue, scriptFailure, toBoolean, type Value } from './value.js'

export interface EvaluationContext extends FunctionContext {
  /** Value of a variable; undefined when it was never set. */
  variable(name: string): Value | undefined
}

/** AND stops at false, OR at true, and both are null as soon as they meet one. */
function connective(
  args: readonly Expression[],
  stopsAt: boolean,
  context: EvaluationContext,
): Value {
  const left = evaluate(args[0] as Expression, context)
  if (left === null) return null
  if (toBoolean(left) === stopsAt) return stopsAt
  const right = evaluate(args[1] as Expression, context)
  return right === null ? null : toBoolean(right)
}

function caseOf(args: readonly Expression[], context: EvaluationContext): Value {
  for (let i = 0; i + 1 < args.length; i += 2) {
    if (isTrue(evaluate(args[i] as Expression, context)))
      return evaluate(args[i + 1] as Expression, context)
  }
  return evaluate(args.at(-1) as Expression, context)
}

export function evaluate(expression: Expression, context: EvaluationContext): Value {
  if (expression.kind === 'constant') return expression.value
  if (expression.kind === 'variable') {
    const value = context.variable(expression.name)
    if (value === undefined) throw scriptFailure(`undefined variable "${expression.name}"`)
    return value
  }
  const { name } = expression
  const args = expression.arguments
  if (name === '!and') return connective(args, false, context)
  if (name === '!or') return connective(args, true, context)
  if (name === '!case') return caseOf(args, context)
  return compute(
    name,
    args.map((argument) => evaluate(argument, context)),
    context,
  )
}

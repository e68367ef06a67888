/** Expression text → tree, with pgbench's precedence. Source followed: exprparse.y. */

import { argumentCount } from './expression-functions.js'
import { ExpressionError, lexExpression, type Token } from './expression-lexer.js'
import { maxInt, minInt, type Value } from './value.js'

export type Expression =
  | { readonly kind: 'constant'; readonly value: Value }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'call'; readonly name: string; readonly arguments: readonly Expression[] }

interface Infix {
  readonly level: number
  readonly name: string
  /** ">" is "<" with its sides exchanged; the right side is then evaluated first. */
  readonly isSwapped?: boolean
  readonly isNonAssociative?: boolean
}

const infix: Readonly<Record<string, Infix>> = {
  or: { level: 1, name: '!or' },
  and: { level: 2, name: '!and' },
  '=': { level: 5, name: '=', isNonAssociative: true },
  '<>': { level: 5, name: '<>', isNonAssociative: true },
  '!=': { level: 5, name: '<>', isNonAssociative: true },
  '<': { level: 5, name: '<', isNonAssociative: true },
  '<=': { level: 5, name: '<=', isNonAssociative: true },
  '>': { level: 5, name: '<', isSwapped: true, isNonAssociative: true },
  '>=': { level: 5, name: '<=', isSwapped: true, isNonAssociative: true },
  '|': { level: 6, name: '|' },
  '#': { level: 6, name: '#' },
  '&': { level: 6, name: '&' },
  '<<': { level: 6, name: '<<' },
  '>>': { level: 6, name: '>>' },
  '+': { level: 7, name: '+' },
  '-': { level: 7, name: '-' },
  '*': { level: 8, name: '*' },
  '/': { level: 8, name: '/' },
  '%': { level: 8, name: 'mod' },
}
const notLevel = 3
const isLevel = 4
const notBitsLevel = 7
const unaryLevel = 9

const constant = (value: Value): Expression => ({ kind: 'constant', value })
const call = (name: string, ...args: Expression[]): Expression => ({
  kind: 'call',
  name,
  arguments: args,
})

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string) {
    this.#tokens = lexExpression(text)
  }

  whole(): Expression {
    const expression = this.#parse(0)
    this.#expect('end', '')
    return expression
  }

  get #token(): Token {
    return this.#tokens[this.#at] as Token
  }

  #is(kind: Token['kind'], text: string): boolean {
    return this.#token.kind === kind && this.#token.text === text
  }

  #take(kind: Token['kind'], text: string): boolean {
    if (!this.#is(kind, text)) return false
    this.#at++
    return true
  }

  #expect(kind: Token['kind'], text: string): void {
    if (!this.#take(kind, text)) throw this.#error()
  }

  #error(): ExpressionError {
    const { text } = this.#token
    return new ExpressionError('syntax error', text === '' ? undefined : `at or near "${text}"`)
  }

  #parse(minimum: number): Expression {
    let left = this.#prefix()
    for (;;) {
      const next = this.#isTest(left, minimum) ?? this.#infix(left, minimum)
      if (next === undefined) return left
      left = next
    }
  }

  #infix(left: Expression, minimum: number): Expression | undefined {
    const { kind, text } = this.#token
    const rule = kind === 'operator' || kind === 'keyword' ? infix[text] : undefined
    if (rule === undefined || rule.level < minimum) return undefined
    this.#at++
    const right = this.#parse(rule.level + 1)
    const after = infix[this.#token.text]
    if (rule.isNonAssociative && after?.level === rule.level) throw this.#error()
    return rule.isSwapped ? call(rule.name, right, left) : call(rule.name, left, right)
  }

  /** IS [NOT] NULL | TRUE | FALSE, ISNULL, NOTNULL. */
  #isTest(left: Expression, minimum: number): Expression | undefined {
    if (this.#token.kind !== 'keyword' || isLevel < minimum) return undefined
    if (this.#take('keyword', 'isnull')) return call('!is', left, constant(null))
    if (this.#take('keyword', 'notnull')) return call('!not', call('!is', left, constant(null)))
    if (!this.#take('keyword', 'is')) return undefined
    const isNegated = this.#take('keyword', 'not')
    const wanted = this.#word()
    if (wanted === undefined) throw this.#error()
    const test = call('!is', left, wanted)
    return isNegated ? call('!not', test) : test
  }

  #word(): Expression | undefined {
    if (this.#take('keyword', 'null')) return constant(null)
    if (this.#take('keyword', 'true')) return constant(true)
    if (this.#take('keyword', 'false')) return constant(false)
    return undefined
  }

  #prefix(): Expression {
    if (this.#take('keyword', 'not')) return call('!not', this.#parse(notLevel))
    if (this.#take('operator', '+')) return this.#parse(unaryLevel)
    // In pgbench's grammar "~" binds like "|", so that ~a + b is ~(a + b).
    if (this.#take('operator', '~')) return call('#', this.#parse(notBitsLevel), constant(-1n))
    if (this.#take('operator', '-')) {
      const { kind } = this.#token
      if (kind === 'int' && (this.#token as { value: bigint }).value === maxInt + 1n) {
        this.#at++
        return constant(minInt)
      }
      return call('-', constant(0n), this.#parse(unaryLevel))
    }
    return this.#primary()
  }

  #primary(): Expression {
    const token = this.#token
    const word = this.#word()
    if (word !== undefined) return word
    if (this.#take('operator', '(')) {
      const inner = this.#parse(0)
      this.#expect('operator', ')')
      return inner
    }
    if (this.#take('keyword', 'case')) return this.#case()
    this.#at++
    switch (token.kind) {
      case 'int':
        if (token.value > maxInt) throw new ExpressionError('bigint constant overflow', token.text)
        return constant(token.value)
      case 'double':
        return constant(token.value)
      case 'variable':
        return { kind: 'variable', name: token.text }
      case 'function':
        return this.#function(token.text)
      default:
        this.#at--
        throw this.#error()
    }
  }

  #case(): Expression {
    const parts: Expression[] = []
    do {
      this.#expect('keyword', 'when')
      parts.push(this.#parse(0))
      this.#expect('keyword', 'then')
      parts.push(this.#parse(0))
    } while (this.#is('keyword', 'when'))
    parts.push(this.#take('keyword', 'else') ? this.#parse(0) : constant(null))
    this.#expect('keyword', 'end')
    return call('!case', ...parts)
  }

  #function(written: string): Expression {
    const name = written.toLowerCase()
    const count = argumentCount(name)
    if (count === undefined) throw new ExpressionError('unexpected function name', written)
    this.#expect('operator', '(')
    const args: Expression[] = []
    if (!this.#is('operator', ')')) {
      do args.push(this.#parse(0))
      while (this.#take('operator', ','))
    }
    this.#expect('operator', ')')
    if (count.most === Number.POSITIVE_INFINITY && args.length < count.least)
      throw new ExpressionError('at least one argument expected', written)
    if (args.length < count.least || args.length > count.most)
      throw new ExpressionError('unexpected number of arguments', written)
    if (count.hasSeed && args.length < count.most)
      args.push({ kind: 'variable', name: 'default_seed' })
    return call(name, ...args)
  }
}

export const parseExpression = (text: string): Expression => new Parser(text).whole()

/**
 * A script ready to run: its commands in order, checked. Source followed: ParseScript, process_backslash_command,
 * CheckConditional in pgbench.c.
 */
import { engineError } from '../../errors/engine-error.js'
import { type Computation, compile } from './compile.js'
import { ExpressionError } from './expression-lexer.js'
import { parseExpression } from './expression-parser.js'
import { cutScript, type ScriptPiece } from './script-lexer.js'
import { cutSql, parameterSql, type SqlTemplate } from './variables.js'

export interface SqlCommand {
  readonly kind: 'sql'
  readonly template: SqlTemplate
  /** For the extended and the prepared protocol. */
  readonly parameterSql: string
  /** Set by \gset and \aset. */
  results?: { readonly mode: 'gset' | 'aset'; readonly prefix: string }
  /** First line, as reports show it. */
  readonly shown: string
}

export type MetaCommand =
  | { readonly kind: 'set'; readonly name: string; readonly compute: Computation }
  | { readonly kind: 'if' | 'elif'; readonly compute: Computation }
  | { readonly kind: 'else' | 'endif' | 'startpipeline' | 'endpipeline' | 'syncpipeline' }
  | { readonly kind: 'sleep'; readonly amount: string; readonly unitUs: number }
  | {
      readonly kind: 'shell'
      readonly words: readonly string[]
      /** Of \setshell: what takes the result. */
      readonly variable?: string
    }

export type Command = (SqlCommand | MetaCommand) & { readonly shown: string }

export interface Script {
  /** File name, or "<builtin: …>". */
  readonly name: string
  readonly weight: number
  readonly commands: readonly Command[]
}

type MetaPiece = ScriptPiece & { kind: 'meta' }

const maxParameters = 255
const sleepUnitsUs: Readonly<Record<string, number>> = { us: 1, ms: 1000, s: 1_000_000 }

class ScriptParser {
  readonly #name: string
  readonly #allowsShell: boolean
  readonly #commands: Command[] = []

  constructor(name: string, allowsShell: boolean) {
    this.#name = name
    this.#allowsShell = allowsShell
  }

  parse(text: string): Command[] {
    for (const piece of cutScript(text)) {
      if (piece.kind === 'sql') this.#commands.push(this.#sql(piece.text, piece.line))
      else this.#add(piece)
    }
    if (this.#commands.length === 0)
      throw engineError('BENCH_USAGE', {
        message: `empty command list for script "${this.#name}"`,
      })
    this.#checkConditions()
    return this.#commands
  }

  #error(piece: { line: number }, message: string, command?: string) {
    const text = command === undefined ? message : `${message} in command "${command}"`
    return engineError('BENCH_SCRIPT_INVALID', {
      where: `${this.#name}:${piece.line}`,
      message: text,
    })
  }

  #sql(text: string, line: number): Command {
    const template = cutSql(text)
    if (template.names.length > maxParameters)
      throw this.#error({ line }, `statement has too many arguments (maximum is ${maxParameters})`)
    const shown = (text.split(/[\r\n]/)[0] as string).slice(0, 127)
    return { kind: 'sql', template, parameterSql: parameterSql(template), shown }
  }

  #add(piece: MetaPiece): void {
    const name = piece.name.toLowerCase()
    if (name === 'gset' || name === 'aset') this.#keepResults(piece, name)
    else this.#commands.push({ ...this.#meta(piece, name), shown: piece.text } as Command)
  }

  #words(piece: MetaPiece, most: number): string[] {
    const words = piece.rest
      .replace(/\\\r?\n/g, ' ')
      .split(/\s+/)
      .filter((word) => word !== '')
    if (words.length > most)
      throw this.#error(
        piece,
        most === 0 ? 'unexpected argument' : 'too many arguments',
        piece.name,
      )
    return words
  }

  #keepResults(piece: MetaPiece, mode: 'gset' | 'aset'): void {
    const [prefix = ''] = this.#words(piece, 1)
    const last = this.#commands.at(-1)
    if (last?.kind !== 'sql' || last.results !== undefined)
      throw this.#error(piece, '\\gset must follow an SQL command')
    last.results = { mode, prefix }
  }

  #meta(piece: MetaPiece, name: string): MetaCommand {
    switch (name) {
      case 'set':
        return this.#set(piece)
      case 'if':
      case 'elif':
        return { kind: name, compute: this.#expression(piece, piece.rest) }
      case 'sleep':
        return this.#sleep(piece)
      case 'else':
      case 'endif':
      case 'startpipeline':
      case 'endpipeline':
      case 'syncpipeline':
        this.#words(piece, 0)
        return { kind: name }
      case 'shell':
      case 'setshell':
        return this.#shell(piece, name)
      default:
        throw this.#error(piece, 'invalid command', piece.name)
    }
  }

  #shell(piece: MetaPiece, name: 'shell' | 'setshell'): MetaCommand {
    if (!this.#allowsShell)
      throw engineError('BENCH_SHELL_REFUSED', {
        where: `${this.#name}:${piece.line}`,
        command: name,
      })
    const words = this.#words(piece, Number.POSITIVE_INFINITY)
    const variable = name === 'shell' ? undefined : words.shift()
    if (words.length === 0)
      throw this.#error(
        piece,
        name === 'shell' ? 'missing command' : 'missing argument',
        piece.name,
      )
    return { kind: 'shell', words, ...(variable === undefined ? {} : { variable }) }
  }

  #set(piece: MetaPiece): MetaCommand {
    const parts = /^(?:\s|\\\r?\n)*(\S+)([\s\S]*)$/.exec(piece.rest)
    if (parts === null) throw this.#error(piece, 'missing argument', piece.name)
    return {
      kind: 'set',
      name: parts[1] as string,
      compute: this.#expression(piece, parts[2] as string),
    }
  }

  #expression(piece: MetaPiece, text: string): Computation {
    try {
      return compile(parseExpression(text))
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      const more = error.more === undefined ? '' : ` (${error.more})`
      throw this.#error(piece, error.message + more, piece.name)
    }
  }

  #sleep(piece: MetaPiece): MetaCommand {
    const words = this.#words(piece, 2)
    let [amount, unit] = words
    if (amount === undefined) throw this.#error(piece, 'missing argument', piece.name)
    if (!amount.startsWith(':')) {
      const split = /^([+-]?\d+)([^\d].*)?$/.exec(amount)
      if (split === null || (split[2] !== undefined && unit !== undefined))
        throw this.#error(piece, `invalid sleep time, must be an integer (${amount})`, piece.name)
      amount = split[1] as string
      unit ??= split[2]
    }
    const unitUs = sleepUnitsUs[(unit ?? 's').toLowerCase()]
    if (unitUs === undefined)
      throw this.#error(piece, `unrecognized time unit, must be us, ms or s (${unit})`, piece.name)
    return { kind: 'sleep', amount, unitUs }
  }

  #checkConditions(): void {
    const open: { hasElse: boolean }[] = []
    const fail = (index: number, message: string) =>
      engineError('BENCH_SCRIPT_INVALID', {
        where: `condition error in script "${this.#name}" command ${index + 1}`,
        message,
      })
    for (const [index, command] of this.#commands.entries()) {
      const { kind } = command
      if (kind === 'if') open.push({ hasElse: false })
      if (kind !== 'elif' && kind !== 'else' && kind !== 'endif') continue
      const top = open.at(-1)
      if (top === undefined) throw fail(index, `\\${kind} without matching \\if`)
      if (kind === 'endif') open.pop()
      else if (top.hasElse) throw fail(index, `\\${kind} after \\else`)
      else if (kind === 'else') top.hasElse = true
    }
    if (open.length > 0) throw fail(this.#commands.length, '\\if without matching \\endif')
  }
}

/** Parses a script. `name` stands in messages and reports; commands for the shell are refused unless they are allowed. */
export function parseScript(name: string, text: string, weight = 1, allowsShell = false): Script {
  return { name, weight, commands: new ScriptParser(name, allowsShell).parse(text) }
}

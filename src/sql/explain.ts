/** EXPLAIN as written: its options and the statement behind them, as a slice of the text. */
import { scanTokens, TokenKind, tokens } from './lexer.js'

export type ExplainFormat = 'text' | 'json' | 'xml' | 'yaml'

export interface ExplainText {
  /** `EXPLAIN (ANALYZE, COSTS OFF) `: put before a statement, it explains that one. */
  readonly prefix: string
  readonly body: string
  readonly analyze: boolean
  readonly format: ExplainFormat
}

const legacyWords = new Set(['analyze', 'analyse', 'verbose'])
const off = new Set(['false', 'off', '0'])

/** Words and literals of one option, quotes taken away: `['format', 'json']`. */
type Option = string[]

const wordAt = (sql: string, at: number): string =>
  sql
    .slice(tokens.starts[at]!, tokens.ends[at]!)
    .toLowerCase()
    .replace(/^(['"])(.*)\1$/s, '$2')

interface Head {
  readonly options: readonly Option[]
  /** First token of the statement. */
  readonly bodyAt: number
}

/** Options in parentheses, `open` being the first of them. */
function readList(sql: string, open: number): Head | undefined {
  const options: Option[] = [[]]
  for (let at = open + 1; at < tokens.count; at++) {
    if (tokens.kinds[at] === TokenKind.comment) continue
    const word = wordAt(sql, at)
    if (word === ')') return { options, bodyAt: at + 1 }
    if (word === ',') options.push([])
    else options.at(-1)!.push(word)
  }
  return undefined
}

/** EXPLAIN ANALYZE VERBOSE statement. */
function readWords(sql: string, first: number): Head {
  const options: Option[] = []
  for (let at = first; at < tokens.count; at++) {
    if (tokens.kinds[at] === TokenKind.comment) continue
    const word = wordAt(sql, at)
    if (!legacyWords.has(word)) return { options, bodyAt: at }
    options.push([word])
  }
  return { options, bodyAt: tokens.count }
}

const afterComments = (from: number): number => {
  let at = from
  while (at < tokens.count && tokens.kinds[at] === TokenKind.comment) at++
  return at
}

/** (SELECT …) UNION … begins with a parenthesis too. */
const startsQuery = (sql: string, open: number): boolean =>
  /^(?:select|with|values|table|\()$/.test(wordAt(sql, afterComments(open + 1)))

/** What stands behind the word EXPLAIN. */
function readHead(sql: string, verb: number): Head | undefined {
  const next = afterComments(verb + 1)
  if (next >= tokens.count) return undefined
  const isList = wordAt(sql, next) === '(' && !startsQuery(sql, next)
  const head = isList ? readList(sql, next) : readWords(sql, next)
  return head && head.bodyAt < tokens.count ? head : undefined
}

/** Undefined where the text is no EXPLAIN. */
export function readExplain(sql: string, standard = true): ExplainText | undefined {
  if (!scanTokens(sql, standard)) return undefined
  const verb = afterComments(0)
  if (verb >= tokens.count || wordAt(sql, verb) !== 'explain') return undefined
  const head = readHead(sql, verb)
  if (!head) return undefined
  const bodyStart = tokens.starts[head.bodyAt]!
  // Of an option that stands twice the last counts.
  const optionOf = (...names: string[]): string | undefined => {
    const found = head.options.findLast(([name]) => names.includes(name ?? ''))
    return found && (found[1] ?? 'true')
  }
  return {
    prefix: `${sql.slice(tokens.starts[verb]!, bodyStart).trimEnd()} `,
    body: sql.slice(bodyStart),
    analyze: !off.has(optionOf('analyze', 'analyse') ?? 'off'),
    format: (optionOf('format') ?? 'text') as ExplainFormat,
  }
}

/**
 * Routing hints in comments at the start or end of a statement: `pgshard_shard: 3`, `pgdog_sharding_key: 'a b'`,
 * `pgshard_role: primary`. Only the first and last comments of a statement count; the leading one wins field by field.
 */
import { TokenKind, tokens } from './lexer.js'

export interface CommentHints {
  readonly shard?: number
  readonly shardingKey?: string
  readonly role?: 'primary' | 'replica'
  /** A hint that cannot be obeyed, with why. */
  readonly invalid?: { readonly hint: string; readonly reason: string }
}

const form =
  /\b(?:pgshard|pgdog)_(shard|sharding_key|role)\s*[:=]\s*('(?:[^']|'')*'|"[^"]*"|[^\s,*;]+)/g

type Draft = { -readonly [K in keyof CommentHints]: CommentHints[K] }

function readField(draft: Draft, field: string, text: string): void {
  if (field === 'shard') {
    if (/^\d{1,6}$/.test(text)) draft.shard ??= Number(text)
    else draft.invalid ??= { hint: `pgshard_shard: ${text}`, reason: 'a shard is a number from 0' }
  } else if (field === 'role') {
    if (text === 'primary' || text === 'replica') draft.role ??= text
    else {
      draft.invalid ??= { hint: `pgshard_role: ${text}`, reason: 'a role is primary or replica' }
    }
  } else draft.shardingKey ??= text
}

const bare = (text: string): string =>
  text.startsWith("'") ? text.slice(1, -1).replaceAll("''", "'") : text.replace(/^"(.*)"$/, '$1')

function readComment(comment: string, draft: Draft): void {
  for (const match of comment.matchAll(form)) readField(draft, match[1]!, bare(match[2]!))
}

/** Hints among the tokens [first, last) of the last scan; undefined when there are none. */
export function readHints(sql: string, first: number, last: number): CommentHints | undefined {
  if (!sql.includes('pgshard_') && !sql.includes('pgdog_')) return undefined
  const draft: Draft = {}
  let from = first
  for (; from < last && tokens.kinds[from] === TokenKind.comment; from++) {
    readComment(sql.slice(tokens.starts[from], tokens.ends[from]), draft)
  }
  let to = last
  while (to > from && tokens.kinds[to - 1] === TokenKind.comment) to--
  for (let i = to; i < last; i++) readComment(sql.slice(tokens.starts[i], tokens.ends[i]), draft)
  return Object.keys(draft).length === 0 ? undefined : draft
}

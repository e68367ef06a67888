/**
 * The trace that a statement belongs to, from a comment as sqlcommenter writes it: `traceparent='00-…-…-01'`.
 * @see W3C Recommendation "Trace Context", §3.2
 */
import { scanTokens, TokenKind, tokens } from './lexer.js'

export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
}

const TRACEPARENT =
  /\btraceparent\s*=\s*'?([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}\b/

/** Only what stands in a comment counts: a literal may hold anything. */
export function traceContextOf(sql: string): TraceContext | undefined {
  if (!sql.includes('traceparent') || !scanTokens(sql)) return undefined
  for (let i = 0; i < tokens.count; i++) {
    if (tokens.kinds[i] !== TokenKind.comment) continue
    const match = TRACEPARENT.exec(sql.slice(tokens.starts[i], tokens.ends[i]))
    const [, version, traceId = '', spanId = ''] = match ?? []
    // ff is no version, and all zeros no id
    if (match && version !== 'ff' && !/^0+$/.test(traceId) && !/^0+$/.test(spanId))
      return { traceId, spanId }
  }
  return undefined
}

/** What became of the statements of an oracle, by family and by where they come from; refusals by template. */
import type { Answer } from '../ask.js'

const families: readonly (readonly [string, RegExp])[] = [
  ['joins', /\bjoin\b/i],
  ['windows', /\bover\b/i],
  ['subqueries', /\(\s*select\b/i],
  ['set operations', /\b(?:union|intersect|except)\b/i],
  ['CTEs', /\bwith\b(?! ties| time)/i],
  [
    'aggregates',
    /\bgroup by\b|\b(?:count|sum|avg|min|max|stddev\w*|var\w*|bool_\w+|bit_\w+|string_agg|array_agg|jsonb?_agg)\(/i,
  ],
]

export const familiesOf = (sql: string): string[] => {
  const found = families.filter(([, pattern]) => pattern.test(sql)).map(([name]) => name)
  return found.length > 0 ? found : ['plain']
}

/** The text without its literals. */
const templateOf = (sql: string): string =>
  sql.replace(/'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b/g, '?').replace(/\s+/g, ' ')

interface Row {
  statements: number
  templates: number
  refused: number
  failed: number
}

export type Verdict = 'same' | 'refused' | 'failed' | 'wrong'

/** A refusal with a reason where PostgreSQL answers is allowed; any other difference is wrong. */
export function judge(direct: Answer, over: Answer, isSame: boolean): Verdict {
  if (direct.error) return over.error?.sqlstate === direct.error.sqlstate ? 'failed' : 'wrong'
  if (!over.error) return isSame ? 'same' : 'wrong'
  return over.error.sqlstate === '0A000' && over.error.hint ? 'refused' : 'wrong'
}

export class FamilyTally {
  /** Templates by family, and whether one of their statements was refused. */
  readonly #seen = new Map<string, Map<string, boolean>>()
  readonly #rows = new Map<string, Row>()
  readonly #reasons = new Map<string, Set<string>>()

  /** Once a statement: the worst verdict of its modes. */
  note(sql: string, source: string, verdict: Verdict, reason: string | undefined): void {
    const template = templateOf(sql)
    for (const name of [...familiesOf(sql), `from ${source}`, 'all']) {
      const row = this.#rows.get(name) ?? { statements: 0, templates: 0, refused: 0, failed: 0 }
      this.#rows.set(name, row)
      row.statements++
      if (verdict === 'failed') row.failed++
      const seen = this.#seen.get(name) ?? new Map<string, boolean>()
      this.#seen.set(name, seen)
      const wasRefused = seen.get(template)
      if (wasRefused === undefined) row.templates++
      if (verdict === 'refused' && !wasRefused) row.refused++
      seen.set(template, wasRefused === true || verdict === 'refused')
    }
    if (verdict !== 'refused') return
    const why = reason ?? 'no reason'
    this.#reasons.set(why, (this.#reasons.get(why) ?? new Set()).add(sql))
  }

  row(name: string): Row {
    return this.#rows.get(name) ?? { statements: 0, templates: 0, refused: 0, failed: 0 }
  }

  print(title: string): void {
    console.log(title)
    console.table(Object.fromEntries(this.#rows))
    for (const [reason, statements] of this.#reasons) {
      console.log(`refused ${statements.size} times: ${reason}\n   ${[...statements][0]}`)
    }
  }
}

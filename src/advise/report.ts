/** What `advise` found, as plain data for `--json`. */
import type { Advice } from './advise.js'
import { type Fate, type FateReason, fates } from './judge.js'
import type { Candidate } from './propose.js'
import type { TableSkew } from './skew.js'

export interface ReportedSkew {
  readonly table: string
  readonly column: string
  readonly estimated_rows?: number
  readonly sampled_rows: number
  readonly distinct_keys: number
  readonly null_keys: number
  readonly largest_key_share: number
  readonly rows_per_shard: readonly number[]
  readonly skew: number
}

export interface AdviceReport {
  readonly shards: number
  readonly tables: number
  readonly fates: readonly Fate[]
  readonly workload: {
    readonly statements: number
    readonly calls: number
    readonly control: number
    readonly rejected: number
    readonly unread: number
  }
  readonly notes: readonly string[]
  readonly candidates: readonly {
    readonly key: string
    readonly score: number
    readonly statements: Readonly<Record<Fate, number>>
    readonly calls: Readonly<Record<Fate, number>>
  }[]
  readonly chosen?: {
    readonly key: string
    readonly sharded_tables: readonly {
      readonly table: string
      readonly column: string
      readonly data_type: string
    }[]
    readonly reference_tables: readonly string[]
    readonly reasons: readonly FateReason[]
    readonly constraints: readonly string[]
    readonly skew?: readonly ReportedSkew[]
  }
}

const counted = (candidate: Candidate, what: 'statements' | 'calls'): Record<Fate, number> =>
  Object.fromEntries(fates.map((fate) => [fate, candidate.verdict.counts[fate][what]])) as Record<
    Fate,
    number
  >

const shortened = (sql: string): string => {
  const line = sql.replace(/\s+/g, ' ').trim()
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}

/** At most so many statements are shown of each kind. */
const shown = 3

function notesOf({ workload }: Advice): string[] {
  const { rejected, unread, control, notes } = workload
  const examples = (list: readonly string[]) =>
    list.slice(0, shown).map((sql) => `: ${shortened(sql)}`)
  return [
    ...notes,
    ...(control === 0
      ? []
      : [`${control} statements about transactions and settings are not counted`]),
    ...(rejected.length === 0
      ? []
      : [`${rejected.length} that PostgreSQL rejects are not counted`]),
    ...rejected.slice(0, shown).map(({ sql, message }) => `  ${message}: ${shortened(sql)}`),
    ...(unread.length === 0
      ? []
      : [`${unread.length} that pgsql-ast-parser cannot read are judged, but proposed no key`]),
    ...examples(unread).map((text) => ` ${text}`),
  ]
}

const reportedSkew = (one: TableSkew): ReportedSkew => ({
  table: one.table,
  column: one.column,
  ...(one.estimatedRows === undefined ? {} : { estimated_rows: one.estimatedRows }),
  sampled_rows: one.sampledRows,
  distinct_keys: one.distinctKeys,
  null_keys: one.nullKeys,
  largest_key_share: one.largestKeyShare,
  rows_per_shard: one.rowsPerShard,
  skew: one.skew,
})

export function adviceReport(
  advice: Advice,
  chosen: Candidate | undefined,
  skew: readonly TableSkew[] | undefined,
  shards: number,
): AdviceReport {
  const { statements, calls, control, rejected, unread } = advice.workload
  const report = {
    shards,
    tables: advice.tables,
    fates,
    workload: {
      statements,
      calls,
      control,
      rejected: rejected.length,
      unread: unread.length,
    },
    notes: notesOf(advice),
    candidates: advice.candidates.map((candidate) => ({
      key: candidate.key,
      score: Math.round(candidate.score * 1000) / 1000,
      statements: counted(candidate, 'statements'),
      calls: counted(candidate, 'calls'),
    })),
  }
  if (!chosen) return report
  return {
    ...report,
    chosen: {
      key: chosen.key,
      sharded_tables: chosen.tables.map(({ table, column, keyType }) => ({
        table: `${table.schema}.${table.name}`,
        column,
        data_type: keyType,
      })),
      reference_tables: chosen.referenceTables.map(({ schema, name }) => `${schema}.${name}`),
      reasons: chosen.verdict.reasons,
      constraints: chosen.constraints,
      ...(skew ? { skew: skew.map(reportedSkew) } : {}),
    },
  }
}

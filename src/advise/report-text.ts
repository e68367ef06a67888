/** What `advise` found, in words and tables. */
import type { AdviceReport } from './report.js'

/** Makes a table of its header and rows; ends with a newline. */
export type TableMaker = (
  header: readonly string[],
  rows: readonly (readonly (string | number)[])[],
) => string

const headings = {
  one: 'one shard',
  any: 'any shard',
  scatter: 'scatter',
  split: 'split',
  gather: 'gather',
  everywhere: 'every shard',
  refused: 'refused',
} as const

const MOST_REASONS = 12

export function adviceText(report: AdviceReport, table: TableMaker): string {
  const { workload, candidates, chosen } = report
  const lines = [
    `${workload.statements} statements (${workload.calls} calls) over ${report.tables} tables, judged for ${report.shards} shards`,
  ]
  if (candidates.length === 0)
    return [...lines, 'no candidate: the workload asks for no column by its value'].join('\n')
  const percent = (part: number): string => `${((part * 100) / workload.calls).toFixed(1)} %`
  const rows = candidates.map(({ key, score, calls }) => [
    key,
    score.toFixed(3),
    ...report.fates.map((fate) => percent(calls[fate])),
  ])
  const header = ['key', 'score', ...report.fates.map((fate) => headings[fate])]
  lines.push(table(header, rows))
  if (chosen) lines.push(...chosenLines(chosen, table))
  return lines.join('\n')
}

function chosenLines(chosen: NonNullable<AdviceReport['chosen']>, table: TableMaker): string[] {
  const copies = chosen.reference_tables
  const reasons = chosen.reasons.slice(0, MOST_REASONS)
  return [
    `sharded by ${chosen.key}:`,
    ...chosen.sharded_tables.map((one) => `  ${one.table} by ${one.column} (${one.data_type})`),
    `on every shard: ${copies.length === 0 ? 'no table' : copies.join(', ')}`,
    ...(reasons.length > 0 ? ['not on one shard:'] : []),
    ...reasons.map(({ fate, calls, reason }) => `  ${calls} × ${fate}: ${reason}`),
    ...chosen.constraints.map((one) => `no shard can keep ${one}`),
    ...(chosen.skew ? [`\n${skewTable(chosen.skew, table)}`] : []),
  ]
}

function skewTable(
  skew: NonNullable<NonNullable<AdviceReport['chosen']>['skew']>,
  table: TableMaker,
): string {
  const header = ['table', 'rows seen', 'keys', 'largest key', 'fullest / even', 'rows per shard']
  const rows = skew.map((one) => [
    one.table,
    one.sampled_rows,
    one.distinct_keys,
    `${(one.largest_key_share * 100).toFixed(1)} %`,
    one.skew.toFixed(2),
    one.rows_per_shard.join(' '),
  ])
  return table(header, rows)
}

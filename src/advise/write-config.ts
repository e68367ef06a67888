/** A candidate as pgdog.toml, ready to be filled with the addresses of the shards. */
import type { Candidate } from './propose.js'

export interface ConfigTarget {
  readonly database: string
  /** One a shard, in order; absent: names to be replaced. */
  readonly hosts?: readonly { readonly host: string; readonly port?: number }[]
}

const text = (value: string): string => JSON.stringify(value)

export function writeConfig(candidate: Candidate, target: ConfigTarget): string {
  const { sharding, tables, referenceTables, constraints } = candidate
  const database = text(target.database)
  const lines = [`# Proposed by pgshard advise: sharded by ${candidate.key}.`]
  if (!target.hosts) lines.push('# Put the addresses of your servers in the place of shard-0, …')
  for (let shard = 0; shard < sharding.shardCount; shard++) {
    const { host, port } = target.hosts?.[shard] ?? { host: `shard-${shard}` }
    lines.push('', '[[databases]]', `name = ${database}`, `host = ${text(host)}`)
    if (port !== undefined) lines.push(`port = ${port}`)
    lines.push(`shard = ${shard}`)
  }
  for (const { table, column, keyType } of tables) {
    lines.push('', '[[sharded_tables]]', `database = ${database}`, `schema = ${text(table.schema)}`)
    lines.push(`name = ${text(table.name)}`, `column = ${text(column)}`)
    lines.push(`data_type = ${text(keyType)}`)
  }
  if (referenceTables.length > 0) {
    const names = referenceTables.map(({ schema, name }) => text(`${schema}.${name}`))
    lines.push('', '[[omnisharded_tables]]', `database = ${database}`)
    lines.push(`tables = [${names.join(', ')}]`)
  }
  if (constraints.length > 0) {
    lines.push(
      '',
      '# No shard can keep these by itself. Writes that they would have to check are refused, unless',
    )
    lines.push('# local_constraints of the table names them: then they hold on each shard only.')
    for (const one of constraints) lines.push(`#   ${one}`)
  }
  return `${lines.join('\n')}\n`
}

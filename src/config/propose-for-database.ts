/** Bucket maps for the hashed tables of one database of a configuration. */
import { engineError } from '../errors/engine-error.js'
import type { LoadedConfig } from './loaded-config.js'
import { type BucketProposal, proposeBuckets } from './propose-buckets.js'

export interface TableProposal extends BucketProposal {
  readonly table: string
  readonly column: string
  readonly bucketsBefore: number
}

/** The named database, or the only one. @throws CONFIG_UNKNOWN_DATABASE */
function chooseDatabase(config: LoadedConfig, name: string | undefined): string {
  const names = config.databases.map((database) => database.name)
  const [only] = names
  if (name === undefined && names.length === 1 && only !== undefined) return only
  if (name !== undefined && names.includes(name)) return name
  throw engineError('CONFIG_UNKNOWN_DATABASE', { database: name ?? '', known: names.join(', ') })
}

/** @throws CONFIG_UNKNOWN_DATABASE, CONFIG_BUCKET_SHARDS, CONFIG_NOT_HASHED */
export function proposeFor(config: LoadedConfig, name: string | undefined, wanted: number) {
  const database = chooseDatabase(config, name)
  const sharding = config.sharding.get(database)
  const shards = sharding?.shardCount ?? 0
  if (wanted === shards) throw engineError('CONFIG_BUCKET_SHARDS', { database, wanted })
  const tables = (sharding?.tables ?? []).flatMap((table): TableProposal[] => {
    if (table.placement.kind !== 'hash') return []
    const place = [table.schema, table.name].filter((part) => part !== undefined).join('.')
    return [
      {
        table: place === '' ? `tables with ${table.column}` : place,
        column: table.column,
        bucketsBefore: table.placement.buckets,
        ...proposeBuckets(table.placement, wanted),
      },
    ]
  })
  if (tables.length === 0) throw engineError('CONFIG_NOT_HASHED', { database })
  return { database, shards: wanted, tables }
}

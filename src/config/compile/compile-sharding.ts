/** The sharding sections → one ShardingConfig a database. What cannot be done rightly is a problem here, never a guess later. */

import { present } from '../../base/present.js'
import type { KeyType } from '../../datum/key-type.js'
import type {
  HashPlacement,
  Placement,
  ShardedTable,
  ShardingConfig,
} from '../../sharding/sharded-table.js'
import type { DatabaseTopology } from '../../topology/topology.js'
import { type Entry, withDefaults } from '../keys/check-section.js'
import {
  mappingKeys,
  omnishardedKeys,
  shardedMappingKeys,
  shardedSchemaKeys,
  shardedTableKeys,
} from '../keys/config-keys-sections.js'
import type { ValuesOf } from '../keys/key-types.js'
import { type Problems, showPlace } from '../problems.js'
import { nearest } from '../suggest.js'
import { compileCentroids } from './compile-centroids.js'
import { checkShard, compileMapping, type MappingEntry } from './compile-mapping.js'

/** Entries of the sharding sections, by section. */
export type EntriesOf = (section: string) => readonly Entry[]

interface Scope {
  readonly database: string
  readonly shardCount: number
  readonly problems: Problems
  readonly entriesOf: EntriesOf
}

type TableValues = ValuesOf<typeof shardedTableKeys>

function hashPlacement(values: TableValues, entry: Entry, scope: Scope): HashPlacement {
  const { shardCount, problems } = scope
  const map = values.bucketMap
  const buckets = values.buckets ?? map?.length ?? shardCount
  if (values.hasher === 'sha1' && !['bigint', 'uuid', 'varchar', 'text'].includes(values.dataType))
    problems.error(
      entry.placeOf('hasher'),
      `hasher sha1 takes bigint, uuid and varchar, not ${values.dataType}`,
    )
  if (buckets < shardCount)
    problems.error(
      entry.placeOf('buckets'),
      `${buckets} buckets for ${shardCount} shards: some would stay empty`,
    )
  if (map && map.length !== buckets)
    problems.error(
      entry.placeOf('bucket_map'),
      `bucket_map has ${map.length} entries for ${buckets} buckets`,
    )
  for (const shard of new Set(map)) checkShard(scope, shard, entry.placeOf('bucket_map'))
  const bucketMap = map ?? Array.from({ length: buckets }, (_, bucket) => bucket % shardCount)
  return { kind: 'hash', hasher: values.hasher, buckets, bucketMap }
}

function mappingOf(values: TableValues, entry: Entry, scope: Scope): readonly MappingEntry[] {
  const below = (entry.values['mapping'] ?? []) as readonly Entry[]
  const own = below.map((one) => ({ ...withDefaults(mappingKeys, one.values), entry: one }))
  const apart = scope.entriesOf('sharded_mappings').flatMap((one) => {
    const mapping = withDefaults(shardedMappingKeys, one.values)
    const mine =
      mapping.database === scope.database &&
      mapping.column === values.column &&
      (mapping.table === undefined || mapping.table === values.name) &&
      (mapping.schema === undefined || mapping.schema === values.schema)
    return mine ? [{ ...mapping, entry: one }] : []
  })
  const [first] = apart
  if (first && own.length > 0)
    scope.problems.error(
      first.entry.place,
      `the table at ${showPlace(entry.place)} has a mapping of its own; keep one of the two`,
    )
  return [...own, ...apart].flatMap((one) =>
    one.shard === undefined ? [] : [present({ ...one, shard: one.shard })],
  )
}

function compileTable(entry: Entry, scope: Scope): ShardedTable | undefined {
  const values = withDefaults(shardedTableKeys, entry.values)
  if (values.column === undefined) return undefined
  const keyType: KeyType = values.dataType
  const mapping = mappingOf(values, entry, scope)
  if (mapping.length > 0) {
    for (const key of ['hasher', 'buckets', 'bucket_map'])
      if (entry.values[key] !== undefined)
        scope.problems.error(entry.placeOf(key), `${key} has no meaning beside a mapping`)
  }
  const isVector = keyType === 'vector' || values.centroids.length > 0 || values.centroidsPath
  const placement: Placement = isVector
    ? compileCentroids({ ...values, isMapped: mapping.length > 0 }, entry, scope)
    : mapping.length > 0
      ? compileMapping(mapping, { ...scope, keyType })
      : hashPlacement(values, entry, scope)
  return present({
    schema: values.schema,
    name: values.name,
    column: values.column,
    keyType,
    placement,
    localConstraints: values.localConstraints.length > 0 ? values.localConstraints : undefined,
  })
}

function checkTableTwins(entries: readonly Entry[], problems: Problems): void {
  const seen = new Map<string, Entry>()
  for (const entry of entries) {
    const { schema, name, column } = withDefaults(shardedTableKeys, entry.values)
    const key = name === undefined ? `column ${column}` : `table ${schema ?? '*'}.${name}`
    const other = seen.get(key)
    if (other)
      problems.error(
        entry.place,
        `${key.replace('*.', '')} is sharded twice (also ${showPlace(other.place)})`,
      )
    seen.set(key, entry)
  }
}

function referenceTables(scope: Scope, tables: readonly ShardedTable[]) {
  return scope.entriesOf('omnisharded_tables').flatMap((entry) => {
    const values = withDefaults(omnishardedKeys, entry.values)
    if (values.database !== scope.database) return []
    return values.tables.map((written) => {
      const [schema, name] = splitName(written)
      const sharded = tables.some(
        (table) =>
          table.name === name &&
          (table.schema === undefined || schema === undefined || table.schema === schema),
      )
      if (sharded)
        scope.problems.error(
          entry.placeOf('tables'),
          `table "${written}" is sharded and omnisharded`,
        )
      return present({ schema, name })
    })
  })
}

/** `schema.table` or `table`. */
function splitName(written: string): [string | undefined, string] {
  const dot = written.indexOf('.')
  return dot === -1 ? [undefined, written] : [written.slice(0, dot), written.slice(dot + 1)]
}

function compileSchemas(scope: Scope): Pick<ShardingConfig, 'schemas' | 'otherTables'> {
  const schemas: { name: string; shard: number }[] = []
  let otherTables: ShardingConfig['otherTables'] =
    scope.shardCount === 1 ? { shard: 0 } : 'reference'
  for (const entry of scope.entriesOf('sharded_schemas')) {
    const values = withDefaults(shardedSchemaKeys, entry.values)
    if (values.database !== scope.database) continue
    if (values.all) {
      // What lies on all shards is the rule already, unless a catch-all takes it away.
      if (values.name === undefined) otherTables = 'reference'
      continue
    }
    checkShard(scope, values.shard, entry.placeOf('shard'))
    if (values.name === undefined) otherTables = { shard: values.shard }
    else schemas.push({ name: values.name, shard: values.shard })
  }
  refuseHiddenSchemas(scope, otherTables)
  return { schemas, otherTables }
}

function refuseHiddenSchemas(scope: Scope, otherTables: ShardingConfig['otherTables']): void {
  if (otherTables === 'reference' || scope.shardCount === 1) return
  for (const entry of scope.entriesOf('sharded_schemas')) {
    const values = withDefaults(shardedSchemaKeys, entry.values)
    if (values.database === scope.database && values.all && values.name !== undefined)
      scope.problems.error(
        entry.placeOf('all'),
        'a schema on all shards beside a catch-all is not supported yet; list its tables in [[omnisharded_tables]]',
      )
  }
}

function compileOne(database: DatabaseTopology, entriesOf: EntriesOf, problems: Problems) {
  const scope = { database: database.name, shardCount: database.shards.length, problems, entriesOf }
  const entries = entriesOf('sharded_tables').filter(
    (entry) => entry.values['database'] === database.name,
  )
  checkTableTwins(entries, problems)
  const tables = entries.flatMap((entry) => compileTable(entry, scope) ?? [])
  const config: ShardingConfig = Object.freeze({
    shardCount: scope.shardCount,
    tables,
    referenceTables: referenceTables(scope, tables),
    ...compileSchemas(scope),
  })
  return config
}

const sections = [
  'sharded_tables',
  'sharded_mappings',
  'sharded_schemas',
  'omnisharded_tables',
  'query_parsers',
]

/** An entry for a database that is not there would leave its tables unsharded in silence. */
function checkDatabases(known: readonly string[], entriesOf: EntriesOf, problems: Problems): void {
  for (const entry of sections.flatMap(entriesOf)) {
    const name = entry.values['database']
    if (typeof name !== 'string' || known.includes(name)) continue
    const guess = nearest(name, known)
    const tail = guess === undefined ? '' : `; did you mean "${guess}"?`
    problems.error(entry.placeOf('database'), `there is no database "${name}"${tail}`)
  }
}

/** Mappings that no table claims would be dropped. */
function checkOrphans(entriesOf: EntriesOf, problems: Problems): void {
  for (const entry of entriesOf('sharded_mappings')) {
    const mapping = withDefaults(shardedMappingKeys, entry.values)
    const claimed = entriesOf('sharded_tables').some((table) => {
      const values = withDefaults(shardedTableKeys, table.values)
      return (
        values.database === mapping.database &&
        values.column === mapping.column &&
        (mapping.table === undefined || mapping.table === values.name) &&
        (mapping.schema === undefined || mapping.schema === values.schema)
      )
    })
    if (!claimed)
      problems.error(entry.place, 'no [[sharded_tables]] entry has this database, table and column')
  }
}

/** Compiles the sharding of every database. */
export function compileSharding(
  databases: readonly DatabaseTopology[],
  entriesOf: EntriesOf,
  problems: Problems,
): ReadonlyMap<string, ShardingConfig> {
  checkDatabases(
    databases.map(({ name }) => name),
    entriesOf,
    problems,
  )
  checkOrphans(entriesOf, problems)
  return new Map(databases.map((one) => [one.name, compileOne(one, entriesOf, problems)]))
}

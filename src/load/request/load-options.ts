/** What the flags of `copy-shard` mean: the dialect of the data, and where rows go when no configuration says so. */
import { readFileSync } from 'node:fs'
import { type CopyOptions, parseCopyOptions } from '../../copy/copy-options.js'
import { columnTypesOf, type KeyType } from '../../datum/key-type.js'
import { engineError } from '../../errors/engine-error.js'
import { makeKeyPlacer } from '../../sharding/key-placer.js'
import type { CopyTable } from '../copy-target.js'
import type { LoadPlacement } from './load-placement.js'

export interface DialectFlags {
  readonly format: string
  readonly header: boolean
  readonly delimiter?: string
  readonly quote?: string
  readonly escape?: string
  readonly null?: string
  readonly encoding?: string
  readonly forceNull: readonly string[]
  readonly forceNotNull: readonly string[]
}

/** @throws what PostgreSQL would say of such a COPY statement */
export function dialectOf(flags: DialectFlags): CopyOptions {
  const options: { name: string; value?: string; list?: readonly string[] }[] = [
    { name: 'format', value: flags.format },
  ]
  const add = (name: string, value: string | undefined) => {
    if (value !== undefined) options.push({ name, value })
  }
  if (flags.header) options.push({ name: 'header' })
  // A shell has no easy way to write a tab.
  add('delimiter', flags.delimiter === '\\t' || flags.delimiter === 'tab' ? '\t' : flags.delimiter)
  add('quote', flags.quote)
  add('escape', flags.escape)
  add('null', flags.null)
  add('encoding', flags.encoding)
  if (flags.forceNull.length > 0) options.push({ name: 'force_null', list: flags.forceNull })
  if (flags.forceNotNull.length > 0)
    options.push({ name: 'force_not_null', list: flags.forceNotNull })
  return parseCopyOptions({ direction: 'in', options })
}

/** Format by a file's name, compression aside; csv when it says nothing. */
export function formatOf(name: string): string {
  const bare = name.replace(/\.(gz|zst|zstd)$/, '')
  if (/\.(tsv|txt|copy)$/.test(bare)) return 'text'
  return /\.(bin|pgcopy)$/.test(bare) ? 'binary' : 'csv'
}

/** A list of names as flags take it: `a,b`, or repeated. */
export const splitNames = (words: readonly string[]): string[] =>
  words.flatMap((word) => word.split(',').map((name) => name.trim())).filter((name) => name !== '')

const types: Readonly<Record<string, KeyType>> = {
  bigint: 'bigint',
  integer: 'integer',
  smallint: 'smallint',
  uuid: 'uuid',
  text: 'text',
  'character varying': 'varchar',
  character: 'bpchar',
  numeric: 'numeric',
  date: 'date',
  'timestamp without time zone': 'timestamp',
  'timestamp with time zone': 'timestamptz',
}

export interface KeyFlags {
  readonly column: string
  readonly keyType?: string
  readonly mapPath?: string
}

/**
 * The type modifier of the key, by which the server rounds or cuts what it stores; keys are hashed as they will be stored.
 * @throws COPY_KEY_TYPE when the column is not of the type by which it shall be hashed
 */
export function keyModifier(table: CopyTable, column: string, keyType: KeyType): number {
  const found = table.columns.find(({ name }) => name === column)
  if (found === undefined) throw engineError('COPY_COLUMN_MISSING', { column, table: table.name })
  const isOfType =
    keyType === 'vector'
      ? /^(?:\w+\.)?vector(?:\(|$)/.test(found.type)
      : columnTypesOf[keyType].includes(found.typeOid)
  if (!isOfType) {
    throw engineError('COPY_KEY_TYPE', { column, type: `${found.type}, not ${keyType}` })
  }
  return found.modifier
}

/** Rows by PostgreSQL's own hash of a column, bucket b on shard b, or where the map says. */
export function placeByColumn(key: KeyFlags, table: CopyTable, shardCount: number): LoadPlacement {
  const { column } = key
  const found = table.columns.find(({ name }) => name === column)
  if (found === undefined) throw engineError('COPY_COLUMN_MISSING', { column, table: table.name })
  const keyType = (key.keyType as KeyType | undefined) ?? types[found.type]
  if (keyType === undefined) throw engineError('COPY_KEY_TYPE', { column, type: found.type })
  const modifier = keyModifier(table, column, keyType)
  const bucketMap =
    key.mapPath === undefined
      ? Array.from({ length: shardCount }, (_, shard) => shard)
      : readBucketMap(key.mapPath, shardCount)
  const placement = {
    kind: 'hash',
    hasher: 'postgres',
    buckets: bucketMap.length,
    bucketMap,
  } as const
  return { kind: 'sharded', placer: makeKeyPlacer({ column, keyType, placement }, modifier) }
}

/** A JSON array: the shard of each bucket. */
function readBucketMap(path: string, shardCount: number): number[] {
  let map: unknown
  try {
    map = JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw engineError('FILE_MISSING', { path, reason }, { cause })
  }
  const isShard = (entry: unknown) =>
    Number.isInteger(entry) && (entry as number) >= 0 && (entry as number) < shardCount
  if (!Array.isArray(map) || map.length === 0 || !map.every(isShard))
    throw engineError('USAGE', {
      message: `"${path}" must be a JSON array with the shard (0 to ${shardCount - 1}) of each bucket`,
    })
  return map as number[]
}

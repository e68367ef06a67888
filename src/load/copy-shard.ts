/** The engine call of `pgshard copy-shard`: what the flags say becomes one load. */
import { engineError } from '../errors/engine-error.js'
import { makeShardMap } from '../sharding/shard-map.js'
import type { ShardingConfig } from '../sharding/sharded-table.js'
import type { CopyTable } from './copy-target.js'
import { type LoadPlacement, type LoadWatch, loadCopy } from './load-copy.js'
import { dialectOf, formatOf, placeByColumn, splitNames } from './load-options.js'
import type { LoadReport } from './load-report.js'
import { type Compression, listInputs } from './open-input.js'

/** The flags as oclif gives them; absent ones are undefined. */
export interface CopyShardFlags {
  readonly table: string
  readonly columns?: readonly string[] | undefined
  readonly format?: string | undefined
  readonly header: boolean
  readonly delimiter?: string | undefined
  readonly quote?: string | undefined
  readonly escape?: string | undefined
  readonly null?: string | undefined
  readonly encoding?: string | undefined
  readonly 'force-null'?: readonly string[] | undefined
  readonly 'force-not-null'?: readonly string[] | undefined
  readonly compression: Compression
  readonly jobs: number
  readonly 'max-rate'?: string | undefined
  readonly 'dry-run': boolean
  readonly verify: boolean
  readonly 'sharding-key'?: string | undefined
  readonly 'key-type'?: string | undefined
  readonly map?: string | undefined
}

export interface CopyShardWatch extends LoadWatch {
  /** Bytes of all inputs on disk; undefined with standard input. */
  onStart(totalBytes: number | undefined): void
}

/** Loads `files` into the shards at `urls`; `sharding` absent: by --sharding-key. */
export async function copyShard(
  files: readonly string[],
  flags: CopyShardFlags,
  shards: { readonly urls: readonly string[]; readonly sharding?: ShardingConfig },
  watch: CopyShardWatch,
): Promise<LoadReport> {
  const inputs = await listInputs(files)
  const sizes = inputs.map(({ sizeBytes }) => sizeBytes)
  const total = sizes.some((size) => size === undefined)
    ? undefined
    : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
  watch.onStart(total)
  const maxBytesPerSec = readRate(flags['max-rate'])
  const columns = splitNames(flags.columns ?? [])
  return await loadCopy(
    {
      inputs,
      compression: flags.compression,
      urls: shards.urls,
      table: flags.table,
      options: optionsOf(files, flags),
      jobs: flags.jobs,
      isDryRun: flags['dry-run'],
      verifies: flags.verify,
      placementOf: (table) => placementOf(table, flags, shards),
      ...(columns.length === 0 ? {} : { columns }),
      ...(maxBytesPerSec === undefined ? {} : { maxBytesPerSec }),
    },
    watch,
  )
}

function optionsOf(files: readonly string[], flags: CopyShardFlags) {
  const { delimiter, quote, encoding } = flags
  return dialectOf({
    format: flags.format ?? formatOf(files[0] ?? ''),
    header: flags.header,
    forceNull: splitNames(flags['force-null'] ?? []),
    forceNotNull: splitNames(flags['force-not-null'] ?? []),
    ...(delimiter === undefined ? {} : { delimiter }),
    ...(quote === undefined ? {} : { quote }),
    ...(flags.escape === undefined ? {} : { escape: flags.escape }),
    ...(flags.null === undefined ? {} : { null: flags.null }),
    ...(encoding === undefined ? {} : { encoding }),
  })
}

function placementOf(
  table: CopyTable,
  flags: CopyShardFlags,
  shards: { readonly urls: readonly string[]; readonly sharding?: ShardingConfig },
): LoadPlacement {
  if (shards.sharding === undefined) {
    const column = flags['sharding-key']
    if (column === undefined)
      throw engineError('USAGE', { message: 'give --sharding-key with --target' })
    const { 'key-type': keyType, map: mapPath } = flags
    const key = {
      column,
      ...(keyType === undefined ? {} : { keyType }),
      ...(mapPath === undefined ? {} : { mapPath }),
    }
    return placeByColumn(key, table, shards.urls.length)
  }
  const map = makeShardMap(shards.sharding)
  const hasColumn = (column: string) => table.columns.some(({ name }) => name === column)
  const found = map.tableOf(table.schema, table.name, hasColumn)
  if (found.kind === 'sharded') return { kind: 'sharded', placer: map.placerOf(found.table) }
  return found
}

const units: Readonly<Record<string, number>> = { '': 1, b: 1, kb: 1e3, mb: 1e6, gb: 1e9 }

/** `500kB`, `20MB`, `1000`: bytes a second. */
function readRate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, number, unit] = /^(\d+(?:\.\d+)?) ?([kmg]?b?)(?:\/s)?$/i.exec(text.trim()) ?? []
  const factor = units[(unit ?? '?').toLowerCase()]
  const rate = Number(number) * (factor ?? Number.NaN)
  if (!(rate > 0))
    throw engineError('USAGE', {
      message: `--max-rate "${text}" is not a number of bytes, such as 20MB`,
    })
  return rate
}

/** The engine call of `pgshard copy-shard`: what the flags say becomes one load. */
import { engineError } from '../errors/engine-error.js'
import { makeKeyPlacer } from '../sharding/key-placer.js'
import { makeShardMap } from '../sharding/shard-map.js'
import type { ShardingConfig } from '../sharding/sharded-table.js'
import { loadBatches } from './batches/load-batches.js'
import type { CopyTable } from './copy-target.js'
import type { ExportRequest } from './export/export-shards.js'
import { type CopyInput, listInputs } from './input/open-input.js'
import type { DumpRequest } from './load-dump.js'
import type { LoadReport } from './load-report.js'
import { type CopyShardFlags, checkFlags, checkInputs } from './request/copy-shard-flags.js'
import {
  dialectOf,
  formatOf,
  keyModifier,
  placeByColumn,
  splitNames,
} from './request/load-options.js'
import type { LoadPlacement } from './request/load-placement.js'
import type { LoadRequest, LoadWatch } from './request/load-request.js'

export interface CopyShardWatch extends LoadWatch {
  /** Bytes of all inputs on disk; undefined with standard input. */
  onStart(totalBytes: number | undefined): void
  note(line: string): void
}

interface ShardChoice {
  readonly urls: readonly string[]
  readonly sharding?: ShardingConfig
}

/** Loads `files` into the shards at `urls`; `sharding` absent: by --sharding-key. */
export async function copyShard(
  files: readonly string[],
  flags: CopyShardFlags,
  shards: ShardChoice,
  watch: CopyShardWatch,
): Promise<LoadReport> {
  if (flags.out !== undefined) {
    const { exportShards } = await import('./export/export-shards.js')
    return await exportShards(exportOf(flags.out, files, flags, shards), watch)
  }
  if (files.length === 0) throw engineError('USAGE', { message: 'name a file to load, or --out' })
  checkFlags(flags)
  const inputs = await listInputs(files)
  checkInputs(inputs, flags)
  const sizes = inputs.map(({ sizeBytes }) => sizeBytes)
  const total = sizes.some((size) => size === undefined)
    ? undefined
    : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
  watch.onStart(total)
  if (flags.format === 'pg_dump') {
    const { loadDump } = await import('./load-dump.js')
    return await loadDump(dumpOf(files, inputs, flags, shards), watch)
  }
  const request = requestOf(files, inputs, flags, shards)
  if (flags['dry-run'] || flags['single-transaction']) {
    const { loadCopy } = await import('./whole/load-copy.js')
    return await loadCopy(request, watch)
  }
  const rejectPath = flags['reject-file']
  return await loadBatches(
    {
      ...request,
      isResume: flags.resume,
      ...batchesOf(flags, shards),
      ...(rejectPath === undefined ? {} : { rejectPath }),
    },
    watch,
  )
}

/** Flags that a dump answers itself, or that need the load of one table. */
const notForDumps = [
  ...(['columns', 'delimiter', 'quote', 'escape', 'null', 'encoding', 'table'] as const),
  ...(['header', 'resume', 'single-transaction', 'force-null', 'force-not-null'] as const),
]

function dumpOf(
  files: readonly string[],
  inputs: readonly CopyInput[],
  flags: CopyShardFlags,
  shards: ShardChoice,
): DumpRequest {
  const wrong = notForDumps.find((name) => flags[name] !== undefined && flags[name] !== false)
  if (wrong !== undefined || flags.jobs > 1)
    throw engineError('USAGE', { message: `--${wrong ?? 'jobs'} is not for --format pg_dump` })
  const {
    table: _,
    options: __,
    ...request
  } = requestOf(files, inputs, { ...flags, format: 'text', table: '' }, shards)
  const rejectPath = flags['reject-file']
  return {
    ...request,
    isResume: false,
    ...batchesOf(flags, shards),
    ...(rejectPath === undefined ? {} : { rejectPath }),
  }
}

function tableOf(flags: CopyShardFlags): string {
  if (flags.table === undefined)
    throw engineError('USAGE', { message: 'give --table (only --format pg_dump does without)' })
  return flags.table
}

/** So much of the input is loaded between two commits. */
/** Each commit makes all shards wait for the slowest. */
const BATCH_BYTES = 256e6
/** Rows of a batch that may be run again are kept in memory. */
const KEPT_BATCH_BYTES = 64e6

const batchesOf = (flags: CopyShardFlags, shards: ShardChoice) => ({
  batchBytes:
    readSize(flags['batch-size'], '--batch-size') ??
    (flags['reject-file'] === undefined ? BATCH_BYTES : KEPT_BATCH_BYTES),
  usesEveryShard: shards.sharding === undefined,
})

function requestOf(
  files: readonly string[],
  inputs: readonly CopyInput[],
  flags: CopyShardFlags,
  shards: ShardChoice,
): LoadRequest {
  const maxBytesPerSec = readSize(flags['max-rate'], '--max-rate')
  const columns = splitNames(flags.columns ?? [])
  return {
    inputs,
    compression: flags.compression,
    urls: shards.urls,
    table: tableOf(flags),
    options: optionsOf(files, flags),
    jobs: flags.jobs,
    isDryRun: flags['dry-run'],
    verifies: flags.verify,
    isTwoPhase: flags['single-transaction'],
    placementOf: (table) => placementOf(table, flags, shards),
    ...(columns.length === 0 ? {} : { columns }),
    ...(maxBytesPerSec === undefined ? {} : { maxBytesPerSec }),
  }
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

function exportOf(
  path: string,
  files: readonly string[],
  flags: CopyShardFlags,
  shards: ShardChoice,
): ExportRequest {
  if (files.length > 0)
    throw engineError('USAGE', { message: 'a file to load and --out exclude each other' })
  if (flags.compression === 'zstd')
    throw engineError('USAGE', { message: '--out is packed by gzip only' })
  const { compression } = flags
  const table = tableOf(flags)
  const isPacked = compression === 'gzip' || (compression === 'auto' && path.endsWith('.gz'))
  const columns = splitNames(flags.columns ?? [])
  const orderBy = flags['order-by']
  return {
    path,
    isPacked,
    urls: shards.urls,
    table,
    options: optionsOf([path], flags),
    placementOf: (found) =>
      shards.sharding === undefined ? EVERYWHERE : placementOf(found, flags, shards),
    ...(columns.length === 0 ? {} : { columns }),
    ...(orderBy === undefined ? {} : { orderBy }),
  }
}

/** For an export any placer will do: rows are read from every shard. */
const EVERYWHERE: LoadPlacement = {
  kind: 'sharded',
  placer: makeKeyPlacer({
    column: '',
    keyType: 'bigint',
    placement: { kind: 'hash', hasher: 'postgres', buckets: 1, bucketMap: [0] },
  }),
}

function placementOf(table: CopyTable, flags: CopyShardFlags, shards: ShardChoice): LoadPlacement {
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
  // A partition stands where the configuration puts the table that it is a partition of.
  const { schema, name } = table.root ?? table
  const found = map.tableOf(schema, name, hasColumn)
  if (found.kind === 'sharded') {
    const { column, keyType } = found.table
    const modifier = keyModifier(table, column, keyType)
    return { kind: 'sharded', placer: map.placerOf(found.table, modifier) }
  }
  return found
}

const units: Readonly<Record<string, number>> = { '': 1, b: 1, kb: 1e3, mb: 1e6, gb: 1e9 }

/** `500kB`, `20MB`, `1000`: bytes, or bytes a second. */
function readSize(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined
  const [, number, unit] = /^(\d+(?:\.\d+)?) ?([kmg]?b?)(?:\/s)?$/i.exec(text.trim()) ?? []
  const factor = units[(unit ?? '?').toLowerCase()]
  const size = Number(number) * (factor ?? Number.NaN)
  if (!(size > 0))
    throw engineError('USAGE', {
      message: `${flag} "${text}" is not a number of bytes, such as 20MB`,
    })
  return size
}

/**
 * Sharding key → shard, for one sharded table: hash, list, range or nearest centre, from text or binary form.
 * The same rule for SQL, COPY and replication. NULL in a hash table goes to the shard of hash 0, as PARTITION BY HASH does.
 */
import { hashModulo } from '../datum/hash.js'
import { type KeyReader, type KeyValue, makeKeyReader } from '../datum/key-reader.js'
import { nearest, packCentroids } from '../datum/vector.js'
import { engineError } from '../errors/engine-error.js'
import { allShards, type ShardId, type ShardSet, someShards } from './shard-set.js'
import type {
  CentroidPlacement,
  HashPlacement,
  ListPlacement,
  RangePlacement,
  ShardedTable,
} from './sharded-table.js'

/** Bytes given are borrowed for the call. */
export interface KeyPlacer {
  readonly table: ShardedTable
  /** @throws KEY_NULL when NULL is not mapped. */
  ofNull(): ShardId
  /**
   * bytes[start, end) in the text input form of the key type, UTF-8.
   * @throws KEY_INVALID, KEY_OUT_OF_RANGE, KEY_AMBIGUOUS (22P02, 22003), KEY_UNMAPPED (23514)
   */
  ofText(bytes: Buffer, start: number, end: number): ShardId
  /** @throws KEY_BINARY_INVALID (22P03), KEY_UNMAPPED (23514) */
  ofBinary(bytes: Buffer, start: number, end: number): ShardId
  /** As `ofText`. */
  ofString(text: string): ShardId
  /** Shards that may hold keys between two bounds in text form; only range placement narrows. */
  ofRange(low: RangeBound | undefined, high: RangeBound | undefined): ShardSet
}

export interface RangeBound {
  /** In text form, or the bytes of the binary form. */
  readonly value: string | Buffer
  readonly inclusive: boolean
}

type Place = (reader: KeyReader) => ShardId

interface Placing {
  readonly place: Place
  readonly ofNull: () => ShardId
  readonly ofRange?: KeyPlacer['ofRange']
}

const unmapped = (table: ShardedTable, reader: KeyReader): Error => {
  const value = reader.value()
  const text = typeof value === 'object' ? reader.identity(value) : String(value)
  return engineError('KEY_UNMAPPED', { value: text.slice(0, 64), column: table.column })
}

const nullUnmapped = (table: ShardedTable): Error =>
  engineError('KEY_NULL', { column: table.column })

const sha1Types = new Set(['bigint', 'integer', 'smallint', 'uuid', 'text', 'varchar', 'bpchar'])

function placeByHash(table: ShardedTable, placement: HashPlacement): Placing {
  const { buckets } = placement
  const map = placement.bucketMap
  const ofNull = (): ShardId => map[0]!
  if (placement.hasher === 'postgres') {
    return {
      ofNull,
      place: (reader) => {
        reader.hash()
        return map[hashModulo(buckets)]!
      },
    }
  }
  if (!sha1Types.has(table.keyType)) {
    throw engineError('KEY_HASHER_TYPE', { type: table.keyType, column: table.column })
  }
  return { ofNull, place: (reader) => map[reader.sha1() % buckets]! }
}

function readString(reader: KeyReader, text: string): KeyValue {
  const bytes = Buffer.from(text)
  reader.readText(bytes, 0, bytes.length)
  return reader.value()
}

function readBound(reader: KeyReader, { value }: RangeBound): KeyValue {
  if (typeof value === 'string') return readString(reader, value)
  reader.readBinary(value, 0, value.length)
  return reader.value()
}

interface ListedValue {
  readonly value: KeyValue
  readonly shard: ShardId
}

function placeByList(table: ShardedTable, placement: ListPlacement, own: KeyReader): Placing {
  const shards = new Map<string, ListedValue>()
  const { fallback } = placement
  let shardOfNull = fallback
  for (const entry of placement.entries) {
    for (const text of entry.values) {
      if (text === null) shardOfNull = entry.shard
      else {
        const value = readString(own, text)
        const identity = own.identity(value)
        if (!shards.has(identity)) shards.set(identity, { value, shard: entry.shard })
      }
    }
  }
  const ranges = readRanges(placement.ranges ?? [], own)
  return {
    ofNull: () => {
      if (shardOfNull === undefined) throw nullUnmapped(table)
      return shardOfNull
    },
    place: (reader) => {
      const value = reader.value()
      const listed = shards.get(reader.identity(value))?.shard
      const shard = listed ?? ranges.find((range) => holds(range, value, own))?.shard ?? fallback
      if (shard === undefined) throw unmapped(table, reader)
      return shard
    },
    ofRange: boundedBy(table, own, fallback, ranges, [...shards.values()]),
  }
}

interface Range {
  readonly start: KeyValue | undefined
  readonly end: KeyValue | undefined
  readonly shard: ShardId
}

const readRanges = (entries: RangePlacement['entries'], own: KeyReader): readonly Range[] => {
  const read = (text: string | undefined): KeyValue | undefined =>
    text === undefined ? undefined : readString(own, text)
  return entries.map((entry) => ({
    start: read(entry.start),
    end: read(entry.end),
    shard: entry.shard,
  }))
}

const holds = (range: Range, value: KeyValue, own: KeyReader): boolean =>
  (range.start === undefined || own.compare(value, range.start) >= 0) &&
  (range.end === undefined || own.compare(value, range.end) < 0)

/** The server's order of text is its collation's, which we do not know: only equality is used there. */
const ordersAsServer = (table: ShardedTable): boolean =>
  !['text', 'varchar', 'bpchar'].includes(table.keyType)

/** Shards of the ranges and listed values that lie between two bounds, and of what is not mapped. */
function boundedBy(
  table: ShardedTable,
  own: KeyReader,
  fallback: ShardId | undefined,
  ranges: readonly Range[],
  listed: readonly ListedValue[],
): KeyPlacer['ofRange'] {
  const rest = fallback === undefined ? [] : [fallback]
  return (low, high) => {
    if (!ordersAsServer(table)) return allShards
    const from = low && readBound(own, low)
    const to = high && readBound(own, high)
    const startsBefore = (start: KeyValue): boolean =>
      to === undefined || own.compare(start, to) < (high!.inclusive ? 1 : 0)
    const endsBehind = (end: KeyValue): boolean => from === undefined || own.compare(from, end) < 0
    const touched = ranges.filter(
      ({ start, end }) =>
        (start === undefined || startsBefore(start)) && (end === undefined || endsBehind(end)),
    )
    const within = listed.filter(
      ({ value }) =>
        startsBefore(value) &&
        (from === undefined || own.compare(from, value) < (low!.inclusive ? 1 : 0)),
    )
    return someShards([...touched, ...within].map(({ shard }) => shard).concat(rest))
  }
}

function placeByRange(table: ShardedTable, placement: RangePlacement, own: KeyReader): Placing {
  const ranges = readRanges(placement.entries, own)
  const { fallback } = placement
  return {
    ofNull: () => {
      if (fallback === undefined) throw nullUnmapped(table)
      return fallback
    },
    place: (reader) => {
      const value = reader.value()
      for (const range of ranges) if (holds(range, value, own)) return range.shard
      if (fallback === undefined) throw unmapped(table, reader)
      return fallback
    },
    ofRange: boundedBy(table, own, fallback, ranges, []),
  }
}

function placeByCentroid(table: ShardedTable, placement: CentroidPlacement): Placing {
  const centroids = packCentroids(placement.centroids)
  return {
    ofNull: () => {
      throw nullUnmapped(table)
    },
    place: (reader) => {
      const vector = reader.value() as Float32Array
      if (vector.length !== centroids.dimensions) {
        throw engineError('KEY_DIMENSIONS', {
          column: table.column,
          given: vector.length,
          wanted: centroids.dimensions,
        })
      }
      return placement.shards[nearest(vector, centroids)]!
    },
  }
}

function placingOf(table: ShardedTable, reader: KeyReader): Placing {
  switch (table.placement.kind) {
    case 'hash':
      return placeByHash(table, table.placement)
    case 'list':
      return placeByList(table, table.placement, reader)
    case 'range':
      return placeByRange(table, table.placement, reader)
    case 'centroids':
      return placeByCentroid(table, table.placement)
  }
}

/**
 * With `typmod`, values are placed as a column with that modifier stores them: for INSERT, UPDATE and COPY, not for
 * comparisons, which know no modifier.
 * @throws KEY_HASHER_TYPE for a hasher that does not know the type; KEY_INVALID for a mapping's own bad value
 */
export function makeKeyPlacer(table: ShardedTable, typmod = -1): KeyPlacer {
  const reader = makeKeyReader(table.keyType, typmod)
  // The mapping's own values are read as they are written.
  const { place, ofNull, ofRange } = placingOf(table, makeKeyReader(table.keyType))
  const scratch = Buffer.alloc(256)
  return {
    table,
    ofNull,
    ofText(bytes, start, end) {
      reader.readText(bytes, start, end)
      return place(reader)
    },
    ofBinary(bytes, start, end) {
      reader.readBinary(bytes, start, end)
      return place(reader)
    },
    ofString(text) {
      if (text.length > 80) {
        const bytes = Buffer.from(text)
        reader.readText(bytes, 0, bytes.length)
      } else reader.readText(scratch, 0, scratch.write(text, 'utf8'))
      return place(reader)
    },
    ofRange: ofRange ?? (() => allShards),
  }
}

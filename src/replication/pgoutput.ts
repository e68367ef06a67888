/**
 * Bytes of pgoutput → changes, protocols 1 to 4. Pure: no socket, no timers.
 * Tuples are ranges into the message, which the caller owns and keeps.
 * Follows "Logical Replication Message Formats" of the PostgreSQL documentation; `src/backend/replication/logical/proto.c`.
 *
 *   Byte1 tag · [Int32 xid inside a stream block] · fields
 */
import { engineError } from '../errors/engine-error.js'
import {
  type Change,
  COLUMN_BINARY,
  COLUMN_NULL,
  COLUMN_TEXT,
  COLUMN_UNCHANGED,
  type Relation,
  type RelationColumn,
  type Tuple,
} from './change.js'
import type { Lsn } from './lsn.js'

const letter = (byte: number): string =>
  byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `0x${byte.toString(16)}`

/** Reads the fields of one message; every read is checked against its end. */
class FieldReader {
  readonly bytes: Buffer
  readonly tag: string
  at = 1

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.tag = letter(bytes[0] as number)
  }

  need(count: number, field: string): number {
    const start = this.at
    if (count < 0 || start + count > this.bytes.length) {
      throw engineError('REPLICATION_TRUNCATED', { tag: this.tag, field })
    }
    this.at = start + count
    return start
  }

  byte(field: string): number {
    return this.bytes[this.need(1, field)] as number
  }
  int16(field: string): number {
    return this.bytes.readInt16BE(this.need(2, field))
  }
  uint32(field: string): number {
    return this.bytes.readUInt32BE(this.need(4, field))
  }
  int32(field: string): number {
    return this.bytes.readInt32BE(this.need(4, field))
  }
  lsn(field: string): Lsn {
    return this.bytes.readBigUInt64BE(this.need(8, field)) as Lsn
  }
  time(field: string): bigint {
    return this.bytes.readBigInt64BE(this.need(8, field))
  }
  string(field: string): string {
    const end = this.bytes.indexOf(0, this.at)
    if (end < 0) throw engineError('REPLICATION_TRUNCATED', { tag: this.tag, field })
    const text = this.bytes.toString('utf8', this.at, end)
    this.at = end + 1
    return text
  }
  bad(field: string, value: string | number): Error {
    return engineError('REPLICATION_BAD_FIELD', { tag: this.tag, field, value })
  }
}

function readTuple(reader: FieldReader): Tuple {
  const count = reader.int16('column count')
  // Each column takes a byte at least: a claimed count is never believed beyond what is there.
  if (count < 0 || count > reader.bytes.length - reader.at) throw reader.bad('column count', count)
  const kinds = new Uint8Array(count)
  const starts = new Int32Array(count)
  const ends = new Int32Array(count)
  for (let i = 0; i < count; i++) {
    const kind = reader.byte('column kind')
    kinds[i] = kind
    if (kind === COLUMN_NULL || kind === COLUMN_UNCHANGED) continue
    if (kind !== COLUMN_TEXT && kind !== COLUMN_BINARY) {
      throw reader.bad('column kind', letter(kind))
    }
    const length = reader.int32('column length')
    starts[i] = reader.need(length, 'column value')
    ends[i] = reader.at
  }
  return { bytes: reader.bytes, kinds, starts, ends }
}

const identities = ['d', 'n', 'f', 'i'] as const

function readRelation(reader: FieldReader): Relation {
  const oid = reader.uint32('relation')
  const schema = reader.string('schema') || 'pg_catalog'
  const name = reader.string('name')
  const mark = letter(reader.byte('replica identity'))
  const identity = identities.find((known) => known === mark)
  if (!identity) throw reader.bad('replica identity', mark)
  const count = reader.int16('column count')
  if (count < 0 || count > reader.bytes.length - reader.at) throw reader.bad('column count', count)
  const columns: RelationColumn[] = []
  for (let i = 0; i < count; i++) {
    const flags = reader.byte('column flags')
    columns.push({
      isKey: (flags & 1) === 1,
      name: reader.string('column name'),
      typeOid: reader.uint32('column type'),
      typeModifier: reader.int32('type modifier'),
    })
  }
  return { kind: 'relation', oid, schema, name, identity, columns }
}

type Decode = (reader: FieldReader) => Change

/** One stream's decoder: keeps the relations announced and whether a stream block is open. */
export class PgoutputDecoder {
  readonly #relations = new Map<number, Relation>()
  #inStream = false
  readonly #decoders: ReadonlyMap<string, Decode>

  constructor() {
    this.#decoders = new Map(Object.entries({ ...plain, ...this.#stateful() }))
  }

  /**
   * Decodes one message. `message` is kept by the tuples that come out of it.
   * @throws REPLICATION_TRUNCATED, REPLICATION_BAD_FIELD, REPLICATION_UNKNOWN_MESSAGE, REPLICATION_UNKNOWN_RELATION
   */
  decode(message: Buffer): Change {
    if (message.length === 0) {
      throw engineError('REPLICATION_TRUNCATED', { tag: '', field: 'tag' })
    }
    const reader = new FieldReader(message)
    const decode = this.#decoders.get(reader.tag)
    if (!decode) throw engineError('REPLICATION_UNKNOWN_MESSAGE', { tag: reader.tag })
    const xid = this.#inStream && 'RYIUDTM'.includes(reader.tag) ? reader.uint32('xid') : undefined
    const change = decode(reader)
    return xid === undefined ? change : ({ ...change, xid } as Change)
  }

  #relation(reader: FieldReader): Relation {
    const oid = reader.uint32('relation')
    const relation = this.#relations.get(oid)
    if (!relation) throw engineError('REPLICATION_UNKNOWN_RELATION', { tag: reader.tag, oid })
    return relation
  }

  /** A row of the relation announced: one column each. */
  #row(reader: FieldReader, relation: Relation): Tuple {
    const tuple = readTuple(reader)
    if (tuple.kinds.length !== relation.columns.length) {
      throw reader.bad('column count', tuple.kinds.length)
    }
    return tuple
  }

  #stateful(): Record<string, Decode> {
    return {
      R: (reader) => {
        const relation = readRelation(reader)
        this.#relations.set(relation.oid, relation)
        return relation
      },
      I: (reader) => {
        const relation = this.#relation(reader)
        const mark = letter(reader.byte('tuple mark'))
        if (mark !== 'N') throw reader.bad('tuple mark', mark)
        return { kind: 'insert', relation, after: this.#row(reader, relation) }
      },
      U: (reader) => this.#update(reader),
      D: (reader) => {
        const relation = this.#relation(reader)
        const mark = letter(reader.byte('tuple mark'))
        if (mark !== 'K' && mark !== 'O') throw reader.bad('tuple mark', mark)
        const before = this.#row(reader, relation)
        return { kind: 'delete', relation, before, beforeKind: mark === 'K' ? 'key' : 'full' }
      },
      T: (reader) => {
        const count = reader.int32('relation count')
        const flags = reader.byte('flags')
        if (count < 0 || count * 4 > reader.bytes.length - reader.at) {
          throw reader.bad('relation count', count)
        }
        const relations = Array.from({ length: count }, () => this.#relation(reader))
        const cascade = (flags & 1) !== 0
        return { kind: 'truncate', relations, cascade, restartIdentity: (flags & 2) !== 0 }
      },
      S: (reader) => {
        const xid = reader.uint32('xid')
        const first = reader.byte('first segment') === 1
        this.#inStream = true
        return { kind: 'stream_start', xid, first }
      },
      E: () => {
        this.#inStream = false
        return { kind: 'stream_stop' }
      },
    }
  }

  #update(reader: FieldReader): Change {
    const relation = this.#relation(reader)
    let mark = letter(reader.byte('tuple mark'))
    let old: { before: Tuple; beforeKind: 'key' | 'full' } | undefined
    if (mark === 'K' || mark === 'O') {
      old = { beforeKind: mark === 'K' ? 'key' : 'full', before: this.#row(reader, relation) }
      mark = letter(reader.byte('tuple mark'))
    }
    if (mark !== 'N') throw reader.bad('tuple mark', mark)
    return { kind: 'update', relation, ...old, after: this.#row(reader, relation) }
  }
}

const prepared =
  (kind: 'prepare' | 'commit_prepared' | 'stream_prepare'): Decode =>
  (reader) => {
    reader.byte('flags')
    const lsn = reader.lsn('lsn')
    const endLsn = reader.lsn('end lsn')
    reader.time('time')
    return { kind, lsn, endLsn, xid: reader.uint32('xid'), gid: reader.string('gid') }
  }

const plain: Record<string, Decode> = {
  B: (reader) => ({
    kind: 'begin',
    finalLsn: reader.lsn('final lsn'),
    timeMicros: reader.time('time'),
    xid: reader.uint32('xid'),
  }),
  C: (reader) => {
    reader.byte('flags')
    return {
      kind: 'commit',
      commitLsn: reader.lsn('commit lsn'),
      endLsn: reader.lsn('end lsn'),
      timeMicros: reader.time('time'),
    }
  },
  O: (reader) => ({ kind: 'origin', lsn: reader.lsn('lsn'), name: reader.string('name') }),
  Y: (reader) => ({
    kind: 'type',
    oid: reader.uint32('type'),
    schema: reader.string('schema') || 'pg_catalog',
    name: reader.string('name'),
  }),
  M: (reader) => {
    const transactional = (reader.byte('flags') & 1) === 1
    const lsn = reader.lsn('lsn')
    const prefix = reader.string('prefix')
    const start = reader.need(reader.int32('length'), 'content')
    const content = reader.bytes.subarray(start, reader.at)
    return { kind: 'message', transactional, lsn, prefix, content }
  },
  c: (reader) => {
    const xid = reader.uint32('xid')
    reader.byte('flags')
    return {
      kind: 'stream_commit',
      xid,
      commitLsn: reader.lsn('commit lsn'),
      endLsn: reader.lsn('end lsn'),
      timeMicros: reader.time('time'),
    }
  },
  A: (reader) => {
    const change = {
      kind: 'stream_abort',
      xid: reader.uint32('xid'),
      subXid: reader.uint32('sub xid'),
    } as const
    // Only parallel streaming (protocol 4) appends the position and the time of the abort.
    if (reader.at === reader.bytes.length) return change
    const abortLsn = reader.lsn('abort lsn')
    reader.time('time')
    return { ...change, abortLsn }
  },
  b: (reader) => {
    const lsn = reader.lsn('prepare lsn')
    const endLsn = reader.lsn('end lsn')
    reader.time('time')
    const xid = reader.uint32('xid')
    return { kind: 'begin_prepare', lsn, endLsn, xid, gid: reader.string('gid') }
  },
  P: prepared('prepare'),
  K: prepared('commit_prepared'),
  p: prepared('stream_prepare'),
  r: (reader) => {
    reader.byte('flags')
    const lsn = reader.lsn('prepare end lsn')
    const endLsn = reader.lsn('rollback end lsn')
    reader.time('prepare time')
    reader.time('rollback time')
    const xid = reader.uint32('xid')
    return { kind: 'rollback_prepared', lsn, endLsn, xid, gid: reader.string('gid') }
  },
}

/** What pgoutput says, decoded: plain owned values, for as long as the bytes they point into are kept. */
import type { Lsn } from './lsn.js'

/** How a column stands in a tuple. */
export const COLUMN_NULL = 0x6e // n
/** An unchanged out-of-line value: the stream does not carry it. */
export const COLUMN_UNCHANGED = 0x75 // u
export const COLUMN_TEXT = 0x74 // t
export const COLUMN_BINARY = 0x62 // b

/** One row version: ranges into `bytes`, nothing copied. `starts` and `ends` are 0 for null and unchanged columns. */
export interface Tuple {
  readonly bytes: Buffer
  readonly kinds: Uint8Array
  readonly starts: Int32Array
  readonly ends: Int32Array
}

export interface RelationColumn {
  readonly name: string
  readonly isKey: boolean
  readonly typeOid: number
  readonly typeModifier: number
}

export interface Relation {
  readonly kind: 'relation'
  readonly oid: number
  readonly schema: string
  readonly name: string
  /** d default · n nothing · f full · i index. */
  readonly identity: 'd' | 'n' | 'f' | 'i'
  readonly columns: readonly RelationColumn[]
  readonly xid?: number
}

export interface RowInsert {
  readonly kind: 'insert'
  readonly relation: Relation
  readonly after: Tuple
  readonly xid?: number
}

export interface RowUpdate {
  readonly kind: 'update'
  readonly relation: Relation
  /** Present when a column of the replica identity changed (`key`) or the identity is FULL (`full`). */
  readonly before?: Tuple
  readonly beforeKind?: 'key' | 'full'
  readonly after: Tuple
  readonly xid?: number
}

export interface RowDelete {
  readonly kind: 'delete'
  readonly relation: Relation
  readonly before: Tuple
  readonly beforeKind: 'key' | 'full'
  readonly xid?: number
}

export interface Truncate {
  readonly kind: 'truncate'
  readonly relations: readonly Relation[]
  readonly cascade: boolean
  readonly restartIdentity: boolean
  readonly xid?: number
}

export interface LogicalMessage {
  readonly kind: 'message'
  readonly transactional: boolean
  readonly lsn: Lsn
  readonly prefix: string
  readonly content: Buffer
  readonly xid?: number
}

/** `finalLsn` is the start of the commit record: what a snapshot's position is compared with. */
export interface Begin {
  readonly kind: 'begin'
  readonly finalLsn: Lsn
  readonly timeMicros: bigint
  readonly xid: number
}

export interface Commit {
  readonly kind: 'commit'
  readonly commitLsn: Lsn
  /** End of the commit record: what may be acknowledged once it is durable elsewhere. */
  readonly endLsn: Lsn
  readonly timeMicros: bigint
}

export type Change =
  | Begin
  | Commit
  | Relation
  | RowInsert
  | RowUpdate
  | RowDelete
  | Truncate
  | LogicalMessage
  | { readonly kind: 'origin'; readonly lsn: Lsn; readonly name: string }
  | {
      readonly kind: 'type'
      readonly oid: number
      readonly schema: string
      readonly name: string
      readonly xid?: number
    }
  | { readonly kind: 'stream_start'; readonly xid: number; readonly first: boolean }
  | { readonly kind: 'stream_stop' }
  | {
      readonly kind: 'stream_commit'
      readonly xid: number
      readonly commitLsn: Lsn
      readonly endLsn: Lsn
      readonly timeMicros: bigint
    }
  | {
      readonly kind: 'stream_abort'
      readonly xid: number
      readonly subXid: number
      /** Protocol 4 with parallel streaming only. */
      readonly abortLsn?: Lsn
    }
  | {
      readonly kind:
        | 'begin_prepare'
        | 'prepare'
        | 'commit_prepared'
        | 'rollback_prepared'
        | 'stream_prepare'
      readonly lsn: Lsn
      readonly endLsn: Lsn
      readonly xid: number
      readonly gid: string
    }

/** A column of a tuple as text, for the few that are read; null for NULL and for an unchanged value. */
export function columnText(tuple: Tuple, index: number): string | null {
  const kind = tuple.kinds[index]
  if (kind !== COLUMN_TEXT && kind !== COLUMN_BINARY) return null
  return tuple.bytes.toString('utf8', tuple.starts[index], tuple.ends[index])
}

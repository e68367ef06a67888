/**
 * What a statement is and what it does to its session beyond its answer: sql/ reads it from the text, routing hands it on,
 * session/ keeps its books by it. Plain data; values are as the client wrote them.
 */

export type StatementKind =
  | 'select'
  | 'insert'
  | 'update'
  | 'delete'
  | 'merge'
  | 'copy'
  | 'begin'
  | 'commit'
  | 'rollback'
  | 'savepoint'
  | 'release'
  | 'rollback_to'
  | 'two_phase'
  | 'set'
  | 'reset'
  | 'show'
  | 'discard'
  | 'prepare'
  | 'execute'
  | 'deallocate'
  | 'listen'
  | 'unlisten'
  | 'notify'
  | 'declare'
  | 'fetch'
  | 'close'
  | 'explain'
  | 'truncate'
  | 'lock'
  | 'call'
  | 'do'
  | 'ddl'
  | 'utility'

export type IsolationLevel =
  | 'read uncommitted'
  | 'read committed'
  | 'repeatable read'
  | 'serializable'

export type TransactionEffect =
  | {
      readonly kind: 'begin'
      readonly readOnly?: boolean
      readonly isolation?: IsolationLevel
    }
  | { readonly kind: 'commit' | 'rollback'; readonly chain: boolean }
  | { readonly kind: 'savepoint' | 'release' | 'rollback_to'; readonly name: string }
  | {
      readonly kind: 'two_phase'
      readonly verb: 'prepare' | 'commit_prepared' | 'rollback_prepared'
    }

export type SettingEffect =
  /** `value` is the text to be spliced after `SET name TO`, as the client wrote it (already quoted); null is DEFAULT. */
  | {
      readonly kind: 'set'
      readonly name: string
      readonly value: string | null
      readonly local: boolean
    }
  | { readonly kind: 'reset'; readonly name: string }
  | { readonly kind: 'reset_all' }
  /** SET TRANSACTION, SET CONSTRAINTS: belongs to the open transaction only. */
  | { readonly kind: 'transaction'; readonly isolation?: IsolationLevel }

interface CursorEffect {
  readonly verb: 'declare' | 'fetch' | 'close' | 'current'
  readonly name: string | null
  /** With declare: WITH HOLD. */
  readonly holds?: boolean
}

/** Why a client must keep its server until the thing is gone. */
export type PinReason =
  | 'temporary object'
  | 'advisory lock'
  | 'cursor with hold'
  | 'listen'
  | 'session state of a function'

export interface CopyEffect {
  readonly direction: 'in' | 'out'
  /** False for COPY FROM 'file' or PROGRAM. */
  readonly stdio: boolean
  /** Absent for COPY (query) TO. Names as PostgreSQL folds them. */
  readonly table?: { readonly schema?: string; readonly name: string }
  /** Absent: all columns. */
  readonly columns?: readonly string[]
  /** Options in the order written, lower-case names; values as text; `['header', 'match']`. Lists (force_null) are joined by commas in `list`. */
  readonly options: readonly {
    readonly name: string
    readonly value?: string
    readonly list?: readonly string[]
  }[]
  readonly where: boolean
}

/** What a statement does to a session, beyond its answer. */
export interface Effects {
  readonly transaction?: TransactionEffect
  readonly settings?: readonly SettingEffect[]
  /** SQL PREPARE: its name; the body's text; type names as written. */
  readonly prepare?: { readonly name: string; readonly bodyStart: number; readonly bodyEnd: number }
  /** `runs` false: it is only planned (EXPLAIN). */
  readonly execute?: { readonly name: string; readonly runs?: boolean }
  /** null: DEALLOCATE ALL. */
  readonly deallocate?: { readonly name: string | null }
  /** A cursor of SQL that it makes, reads, closes (null: all) or names in WHERE CURRENT OF. */
  readonly cursor?: CursorEffect
  readonly discard?: 'all' | 'plans' | 'sequences' | 'temp'
  readonly listen?: { readonly channel: string }
  readonly unlisten?: { readonly channel: string | null }
  readonly notify?: { readonly channel: string; readonly payload: string }
  readonly copy?: CopyEffect
  readonly pins: readonly PinReason[]
  /** May give back an advisory lock of the session. */
  readonly unlocks?: boolean
  /** Names of temporary relations that it makes. */
  readonly temporary?: readonly string[]
  /** May leave settings or other session state behind that cannot be read from the text (hard-parts §2). */
  readonly taints: boolean
  readonly changesSchema: boolean
}

/**
 * Where a client stands in its transaction, and the settings that follow it: what SET changed is undone by ROLLBACK,
 * what SET LOCAL changed ends with the transaction. Also the log of what a server that joins late must be told.
 */
import type { SettingEffect, TransactionEffect } from '../../plan/effects.js'
import type { Settings } from '../../server/settings.js'
import { TX_FAILED, TX_IDLE, TX_OPEN } from '../../wire/tags.js'
import { Cursors } from './cursors.js'

/** `pending`: BEGIN was answered, no server has heard of it yet. */
export type TransactionPhase = 'idle' | 'pending' | 'open' | 'failed'

/** Whether each statement has a snapshot of its own, or the transaction one. */
export type SnapshotLevel = 'statement' | 'repeatable' | 'serializable'

/** A NOTIFY of the client, as the server that ran it will pass it on. */
export interface SentNotice {
  readonly processId: number
  readonly channel: string
  readonly payload: string
}

/** What the transaction has done beside settings that is undone with it. */
interface Pending {
  readonly channels: ReadonlySet<string>
  readonly notices: readonly SentNotice[]
}

const nothing: Pending = { channels: new Set(), notices: [] }

interface LogEntry {
  readonly sql: string
  /** Name of the savepoint that the entry makes. */
  readonly savepoint?: string
  /** The client's settings before the entry. */
  readonly before: Settings
  readonly localBefore: Settings | undefined
  readonly pending: Pending
  /** SET TRANSACTION: holds on in the transaction that AND CHAIN begins. */
  readonly isCharacteristic?: boolean
}

export class Transaction {
  phase: TransactionPhase = 'idle'
  /** The client's BEGIN, as a server shall hear it. */
  beginText = 'BEGIN'
  level: SnapshotLevel = 'statement'
  /** Every shard has taken its snapshot for it. */
  hasSnapshots = false
  readOnly = false
  /** Begun by us, for one request that goes to several shards: its end is ours too. */
  isOurs = false
  /** The proxy refused a statement: servers may still think the transaction sound. */
  failedByUs = false
  /** A statement in it changed the schema. */
  changedSchema = false
  /** How often the schema is still to be read that the client has changed: it plans nothing before. */
  schemaReads = 0
  /** One of them gave a table, view or function that others know another meaning, which the catalog has not heard of. */
  changedMeanings = false
  /** One of them may have made other columns of a name that others know: what is placed by a key is placed by the old ones. */
  changedKeys = false
  /** One of them keeps others from reading a table, connections of our own too. */
  locksTables = false
  settings: Settings
  /** The settings that RESET goes back to: those of the startup packet. */
  readonly startup: Settings
  /** Settings at the start of the transaction, explicit or implicit. */
  base: Settings
  /** With what SET LOCAL has changed, while the transaction lasts. */
  #local: Settings | undefined
  /** Channels that the client listens to by what was committed. */
  listening: ReadonlySet<string> = nothing.channels
  #pending: Pending = nothing
  #sent: readonly SentNotice[] = nothing.notices
  #log: LogEntry[] = []

  /** Of SQL. */
  readonly cursors = new Cursors()

  readonly #defaultIsolation: string

  /** `defaultIsolation` holds until the client sets default_transaction_isolation. */
  constructor(startup: Settings, defaultIsolation = 'read committed') {
    this.#defaultIsolation = defaultIsolation
    this.startup = startup
    this.settings = startup
    this.base = startup
  }

  get statusByte(): number {
    if (this.phase === 'idle') return TX_IDLE
    return this.phase === 'failed' ? TX_FAILED : TX_OPEN
  }

  /** The settings that statements see now. */
  get effective(): Settings {
    return this.#local ?? this.settings
  }

  /** Channels that the client will listen to when what it has done is committed. */
  get channels(): ReadonlySet<string> {
    return this.#pending.channels
  }

  /** True from BEGIN to COMMIT or ROLLBACK. */
  get isExplicit(): boolean {
    return this.phase !== 'idle'
  }

  /** Its BEGIN leaves open whether it writes, and a replica can do what it asks for. */
  get mayBeginOnReplica(): boolean {
    return !this.needsOneSnapshot && !/read\s+write/i.test(this.beginText)
  }

  /** What a server that joins the open transaction hears after BEGIN. */
  get replay(): readonly string[] {
    return this.#log.map((entry) => entry.sql)
  }

  /** How much it has done: what is made at one length is undone by ROLLBACK TO that cuts the log to it or below. */
  get logLength(): number {
    return this.#log.length
  }

  get hasSavepoints(): boolean {
    return this.#log.some((entry) => entry.savepoint !== undefined)
  }

  hasSavepoint(name: string): boolean {
    return this.#log.some((entry) => entry.savepoint === name)
  }

  begin(
    effect: Extract<TransactionEffect, { kind: 'begin' }>,
    text: string,
    phase: 'pending' | 'open',
  ): void {
    this.phase = phase
    this.beginText = text
    this.readOnly = effect.readOnly ?? false
    this.level = this.levelOf(effect.isolation)
    this.hasSnapshots = false
    // `base` stays what it was before the request: BEGIN takes along what a string or pipeline has done before it
    this.#log = []
  }

  /** REPEATABLE READ or above. */
  get needsOneSnapshot(): boolean {
    return this.level !== 'statement'
  }

  /** Of a transaction that is begun with `isolation`, or with none. */
  levelOf(isolation: string | undefined): SnapshotLevel {
    return levelOf(
      isolation ??
        this.settings.values.get('default_transaction_isolation') ??
        this.#defaultIsolation,
    )
  }

  /** BEGIN for a request that a single server would run in a transaction of its own making. */
  beginOurs(): void {
    this.begin({ kind: 'begin' }, 'BEGIN', 'pending')
    this.isOurs = true
  }

  /** A statement was refused or a server was lost: only ROLLBACK leads on. */
  fail(): void {
    this.phase = 'failed'
    this.failedByUs = true
  }

  /** The transaction ended; `committed` false undoes its settings. */
  end(committed: boolean, chain = false): void {
    if (!committed) this.settings = this.base
    this.base = this.settings
    this.#local = undefined
    this.cursors.ended(committed)
    this.#settle(committed)
    this.#log = chain ? this.#log.filter((entry) => entry.isCharacteristic) : []
    this.failedByUs = false
    this.changedSchema = false
    this.changedMeanings = false
    this.changedKeys = false
    this.locksTables = false
    this.isOurs = false
    this.hasSnapshots = false
    if (!chain) {
      this.phase = 'idle'
      this.readOnly = false
      this.level = 'statement'
    } else this.phase = 'open'
  }

  /** A statement failed outside an explicit transaction: what its request had set is undone. */
  undoImplicit(): void {
    if (this.isExplicit) return
    this.settings = this.base
    this.cursors.ended(false)
    this.#settle(false)
  }

  /** A request outside an explicit transaction is complete. */
  keepImplicit(): void {
    if (this.isExplicit) return
    this.base = this.settings
    this.cursors.ended(true)
    this.#settle(true)
  }

  /** LISTEN has run: it counts from COMMIT on. */
  listen(channel: string): void {
    this.#pending = { ...this.#pending, channels: new Set([...this.channels, channel]) }
  }

  /** UNLISTEN has run; null is all. */
  unlisten(channel: string | null): void {
    const kept = [...this.channels].filter((one) => channel !== null && one !== channel)
    this.#pending = { ...this.#pending, channels: new Set(kept) }
  }

  /** NOTIFY has run: it is sent with COMMIT. */
  notify(notice: SentNotice): void {
    this.#pending = { ...this.#pending, notices: [...this.#pending.notices, notice] }
  }

  /** Notices of the client that were committed since it was last asked. */
  takeSent(): readonly SentNotice[] {
    if (this.#sent.length === 0) return this.#sent
    const sent = this.#sent
    this.#sent = nothing.notices
    return sent
  }

  #settle(committed: boolean): void {
    const pending = this.#pending
    if (pending.channels === this.listening && pending.notices.length === 0) return
    if (committed) {
      this.listening = pending.channels
      this.#sent = [...this.#sent, ...pending.notices]
    }
    this.#pending = { channels: this.listening, notices: nothing.notices }
  }

  savepoint(name: string): void {
    this.#log.push({
      sql: `SAVEPOINT ${quoteName(name)}`,
      savepoint: name,
      before: this.settings,
      localBefore: this.#local,
      pending: this.#pending,
    })
  }

  release(name: string): void {
    const from = this.#lastSavepoint(name)
    if (from < 0) return
    this.#log = this.#log.filter((entry, index) => index < from || entry.savepoint === undefined)
    this.cursors.released(this.#log.length)
  }

  rollbackTo(name: string): void {
    const at = this.#lastSavepoint(name)
    if (at < 0) return
    const entry = this.#log[at] as LogEntry
    this.settings = entry.before
    this.#local = entry.localBefore
    this.#pending = entry.pending
    this.#log.length = at + 1
    this.cursors.rolledBackTo(at + 1)
    this.failedByUs = false
    if (this.phase === 'failed') this.phase = 'open'
  }

  /** Notes a SET, RESET or SET TRANSACTION that a server has accepted; `sql` is the client's own text. */
  apply(effect: SettingEffect, sql: string): void {
    const before = this.settings
    const localBefore = this.#local
    const isCharacteristic = this.isExplicit && this.#applyCharacteristic(effect, sql)
    if (!isCharacteristic) this.#change(effect)
    const pending = this.#pending
    if (this.isExplicit) this.#log.push({ sql, before, localBefore, pending, isCharacteristic })
  }

  #change(effect: SettingEffect): void {
    if (effect.kind === 'transaction') return
    if (effect.kind === 'set' && effect.local) {
      if (this.isExplicit) this.#local = this.#after(this.effective, effect)
      return
    }
    this.settings = this.#after(this.settings, effect)
    if (this.#local) this.#local = this.#after(this.#local, effect)
  }

  /** SET TRANSACTION, also in its spelling as a parameter: never a setting of the session. */
  #applyCharacteristic(effect: SettingEffect, sql: string): boolean {
    const isSpelled = effect.kind === 'set' && /^transaction_/i.test(effect.name)
    if (!isSpelled && effect.kind !== 'transaction') return false
    if (effect.kind === 'transaction') {
      if (effect.isolation !== undefined) this.level = levelOf(effect.isolation)
      return !/^\s*set\s+constraints\b/i.test(sql)
    }
    if (effect.name.toLowerCase() === 'transaction_isolation')
      this.level = levelOf(effect.value ?? undefined)
    return true
  }

  /** Settings as RESET ALL and DISCARD ALL leave them. */
  resetAll(): void {
    this.settings = this.startup
    this.base = this.startup
    this.listening = nothing.channels
    this.#pending = nothing
    this.cursors.closed(null)
  }

  #after(from: Settings, effect: Exclude<SettingEffect, { kind: 'transaction' }>): Settings {
    if (effect.kind === 'reset_all') return this.startup.withIdentityOf(from)
    const key = effect.name.toLowerCase()
    const value = effect.kind === 'set' ? effect.value : null
    // another session user has no role yet
    const settings = key === 'session_authorization' ? from.without('role') : from
    if (value !== null) return settings.with(key, value)
    const initial = this.startup.values.get(key)
    return initial === undefined ? settings.without(key) : settings.with(key, initial)
  }

  #lastSavepoint(name: string): number {
    return this.#log.findLastIndex((entry) => entry.savepoint === name)
  }
}

/** `level` as a word, or as the text of a SET. */
const levelOf = (level: string | undefined): SnapshotLevel => {
  const word = /^['"]?(repeatable read|serializable)['"]?$/i.exec(level ?? '')?.[1]?.toLowerCase()
  if (word === undefined) return 'statement'
  return word === 'serializable' ? 'serializable' : 'repeatable'
}

const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`

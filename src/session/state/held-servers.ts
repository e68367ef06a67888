/**
 * The servers that one client holds now, by shard, and what each must hear before the client's request:
 * settings, BEGIN and what the transaction has done so far. Gives them back clean, or not at all.
 */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { Relay, type RelayListener, type RelayOutput } from '../../executor/relay.js'
import type { PinReason } from '../../plan/effects.js'
import type { Owner } from '../../pool/pool-types.js'
import type { ServerCheckout } from '../../pool/shard-pools.js'
import { queryFrame, type ServerConnection } from '../../server/server-connection.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import type { DatabaseAccess } from '../environment.js'
import { type Collecting, collectServers } from './collect-servers.js'
import { giveBack } from './give-back.js'
import { type Prelude, preludeOf } from './prelude.js'
import { SeenPositions } from './seen-positions.js'
import type { Transaction } from './transaction.js'

export interface HeldServer {
  readonly shard: number
  readonly checkout: ServerCheckout
  readonly server: ServerConnection
  readonly relay: Relay
  /** The open transaction was begun on it. */
  joined: boolean
  /** A statement that looks at rows ran on it in this transaction: it has a snapshot. */
  worked: boolean
  /** A statement that may write ran on it in this transaction. */
  wrote: boolean
  /** NOTIFY ran on it in this transaction, so that it cannot be prepared for a two-phase commit. */
  notified: boolean
  /** Statements whose Parse was sent in the request that runs. */
  readonly preparing: Set<SharedStatement>
  /** Writes that wait until the server has answered what it must hear first. */
  deferred: (() => void)[] | undefined
}

type Listen = (held: () => HeldServer) => RelayListener

/** The client's session, as far as its servers concern it. */
interface Holder {
  readonly access: DatabaseAccess
  readonly output: RelayOutput
  readonly environment: { readonly clock: Clock }
}

export class HeldServers {
  readonly #held = new Map<number, HeldServer>()
  readonly #access: DatabaseAccess
  readonly #output: RelayOutput
  readonly #listen: Listen
  /** Why the client keeps its servers; it does so while this is not empty. */
  readonly pins = new Set<PinReason | 'session mode'>()
  /** Temporary relations of the client → the shard on which each stands. */
  readonly temporary = new Map<string, number>()
  /** How far the client has seen each shard, when its reads shall show what it wrote. */
  readonly seen: SeenPositions | undefined
  /** Called when the client has gone. */
  onClosed: (() => void) | undefined
  /** The client has gone: nothing may be begun for it. */
  isClosed = false
  /** The end of a transaction over several servers is under way. */
  ending: { readonly done: Promise<unknown>; decision: string | undefined } | undefined
  #late: Promise<HeldServer> | undefined
  #waiting: AbortController | undefined
  #wanted: { readonly shard: number; readonly role: 'primary' | 'any' } | undefined
  /** Until every cancel that was sent has arrived. */
  #cancels: Promise<void> | undefined
  static #lastOrder = 0
  readonly #clock: Clock
  /** The client, as those see it who wait for the same pools. */
  readonly owner: Collecting<HeldServer>['owner'] = { order: 0, giveBack: undefined }
  /** It has made way for a transaction that waited. */
  isSentBack = false
  /** How often a wait was ended from outside. */
  stops = 0

  constructor({ access, output, environment }: Holder, listen: Listen) {
    this.#access = access
    this.#clock = environment.clock
    this.seen = access.pools.readsYourWrites ? new SeenPositions(access.pools) : undefined
    this.#output = output
    this.#listen = listen
  }

  /** Greater is younger: when the first of those held was asked for. */
  get order(): number {
    return this.owner.order
  }

  /** The shard for whose server it stands in a queue. */
  get wantedShard(): number | undefined {
    return this.#waiting ? this.#wanted?.shard : undefined
  }

  get size(): number {
    return this.#held.size
  }

  get isWaiting(): boolean {
    return this.#waiting !== undefined
  }

  /** What the client waits for, for people. */
  get waitsFor(): string | undefined {
    if (!this.#waiting || !this.#wanted) return undefined
    return this.#access.pools.whyWaiting(this.#wanted.shard, this.#wanted.role)
  }

  get(shard: number): HeldServer | undefined {
    return this.#held.get(shard)
  }

  /** The only one held, or the first. */
  get first(): HeldServer | undefined {
    for (const held of this.#held.values()) return held
    return undefined
  }

  /** That on which the open transaction was begun first. */
  get firstJoined(): HeldServer | undefined {
    for (const held of this.#held.values()) if (held.joined) return held
    return undefined
  }

  all(): HeldServer[] {
    return [...this.#held.values()].sort((a, b) => a.shard - b.shard)
  }

  /** The held server of `shard`, or one from the pool: at once when there is one. */
  acquire(shard: number, role: 'primary' | 'any'): HeldServer | Promise<HeldServer> {
    const held = this.#held.get(shard)
    if (this.isClosed) throw engineError('POOL_CHECKOUT_ABORTED')
    if (held) {
      this.seen?.lose(shard)
      return held
    }
    return this.#checkOut(shard, role, shard)
  }

  /** Another server of the primary of `shard`, which takes no part in the transaction; in the books under −1 − shard. */
  acquireApart(shard: number): HeldServer | Promise<HeldServer> {
    if (this.isClosed) throw engineError('POOL_CHECKOUT_ABORTED')
    return this.#checkOut(shard, 'primary', -1 - shard)
  }

  #checkOut(
    shard: number,
    role: 'primary' | 'any',
    number: number,
  ): HeldServer | Promise<HeldServer> {
    const waiting = new AbortController()
    const wish = this.seen?.wish(shard, role) ?? { role }
    this.seen?.lose(shard)
    const checkout = this.#access.pools.checkout(shard, wish.role, {
      ...(wish.after ? { after: wish.after } : {}),
      signal: waiting.signal,
      holdsServers: this.#held.size > 0 || this.isSentBack,
      owner: this.#asOwner(),
    })
    if (!(checkout instanceof Promise)) return this.#add(number, checkout)
    this.#waiting = waiting
    this.#wanted = { shard, role }
    const acquired = checkout.then(
      (lent) => {
        this.#waiting = undefined
        this.#late = undefined
        return this.#add(number, lent)
      },
      (error: unknown) => {
        this.#waiting = undefined
        this.#late = undefined
        throw error
      },
    )
    this.#late = acquired
    return acquired
  }

  /** In ascending shard order, so that two scatters cannot wait for each other (hard-parts §3.4). */
  acquireAll(shards: readonly number[], role: 'primary' | 'any'): Promise<HeldServer[]> {
    return collectServers(this, shards, role)
  }

  /** As those see it who wait for the same servers: as old as its first, among those of other processes too. */
  #asOwner(): Owner {
    if (this.#held.size === 0 && !this.isSentBack) {
      HeldServers.#lastOrder = Math.max(HeldServers.#lastOrder + 1, this.#clock.nowMs() * 1000)
      this.owner.order = HeldServers.#lastOrder
    }
    return this.owner
  }

  /** The client has gone: servers that still come from a pool are returned by the promise. */
  async close(): Promise<HeldServer[]> {
    this.isClosed = true
    this.onClosed?.()
    const late = this.#late
    this.#late = undefined
    if (!late) return []
    try {
      return [await late]
    } catch {
      return []
    }
  }

  /** Takes a server out of the books without giving it back. */
  forget(held: HeldServer): void {
    this.#drop(held)
    held.server.receiver = undefined
    held.server.onIdle = undefined
  }

  /** The wait for a server ends, whatever it was for. */
  stopWaiting(): void {
    this.stops++
    this.leaveQueue()
  }

  /** Leaves the queue of a pool. */
  leaveQueue(): void {
    this.#waiting?.abort()
  }

  /** Sends a cancel to every server that works for the client; they are lent again only after it was delivered. */
  cancel(): void {
    for (const held of this.#held.values()) {
      if (held.server.outstanding === 0) continue
      this.keepUntil(held.server.cancel().catch(() => undefined))
    }
  }

  /** Servers are given back only after `sent`, which never rejects. */
  keepUntil(sent: Promise<unknown>): void {
    const all = Promise.all([this.#cancels, sent]).then(() => {
      if (this.#cancels === all) this.#cancels = undefined
    })
    this.#cancels = all
  }

  /** What was released while a cancel was on its way is lent again only once that has arrived. */
  async whenGivenBack(): Promise<void> {
    await this.#cancels
    await new Promise<void>((resolve) => void setImmediate(resolve))
  }

  #add(shard: number, checkout: ServerCheckout): HeldServer {
    const server = checkout.resource
    const held: HeldServer = {
      shard,
      checkout,
      server,
      relay: new Relay(
        server,
        this.#output,
        this.#listen(() => held),
      ),
      joined: false,
      worked: false,
      wrote: false,
      notified: false,
      preparing: new Set(),
      deferred: undefined,
    }
    server.receiver = held.relay
    this.#held.set(shard, held)
    return held
  }

  /** Lets a server join the transaction now (or a transaction of our own, when the client has none), with a query behind it. @throws its error */
  async joinNow(held: HeldServer, transaction: Transaction, first?: string): Promise<void> {
    const prelude = this.prelude(held, transaction)
    const bytes = [...prelude.bytes]
    let syncs = prelude.syncs
    if (first !== undefined) {
      bytes.push(queryFrame(first))
      syncs++
    }
    if (!transaction.isExplicit && !held.joined) {
      bytes.push(queryFrame('BEGIN'))
      syncs++
      held.joined = true
    }
    if (syncs === 0) return
    held.server.unnamed = undefined
    await held.server.ask(Buffer.concat(bytes), syncs)
    for (const expectation of prelude.expectations) expectation.done?.()
  }

  /** What `held` must hear before the next request of the client. */
  prelude(held: HeldServer, transaction: Transaction): Prelude {
    return preludeOf(held, transaction)
  }

  /** After the end of a transaction: gives back every server, unless pinned. */
  releaseAll(): void {
    for (const held of this.#held.values()) {
      held.joined = false
      held.worked = false
      held.wrote = false
      held.notified = false
    }
    if (this.pins.size > 0) return
    for (const held of this.#held.values()) this.release(held)
  }

  /** While a server is pinned, what it says on its own (NOTIFY) goes to the client at once. */
  watchPinned(): void {
    for (const held of this.#held.values()) held.server.receiver = held.relay
  }

  /** Gives back one server that has nothing under way. */
  release(held: HeldServer): void {
    this.#drop(held)
    held.server.onIdle = undefined
    const cancels = this.#cancels
    if (cancels !== undefined) {
      // a ROLLBACK of ours may be on its way: its own receiver must hear the end of it
      if (held.server.receiver === held.relay) held.server.receiver = undefined
      void cancels.then(() => {
        held.server.receiver = undefined
        return giveBack(held)
      })
      return
    }
    held.server.receiver = undefined
    // nearly always at once: whoever comes next finds the server that ran last
    if (held.server.isIdle && !held.server.tainted) held.checkout.release()
    else void giveBack(held)
  }

  #drop(held: HeldServer): void {
    if (this.#held.get(held.shard) === held) this.#held.delete(held.shard)
  }

  /** Throws one away: what it is doing cannot be trusted. */
  discard(held: HeldServer, why: string): void {
    this.#drop(held)
    held.server.receiver = undefined
    held.server.onIdle = undefined
    held.checkout.discard(why)
  }
}

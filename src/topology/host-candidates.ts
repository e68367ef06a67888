/**
 * The walk over the hosts of a connection string: `connectCandidates(conninfo, open, tools)`.
 * Hosts are shuffled before any is resolved, the addresses of one host after it is resolved; one host at a time, each
 * address with its own time limit, until one opens and fits target_session_attrs. Opens nothing itself: `open`, the
 * resolver, the clock and chance are handed in. Source followed: PQconnectPoll, load_balance_hosts, in fe-connect.c.
 */
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import {
  type AttemptFailure,
  attemptBlock,
  attemptFailure,
  resolveFailure,
} from './attempt-failure.js'
import type { Conninfo, ConninfoHost, TargetSessionAttrs } from './conninfo.js'
import { shuffleInPlace, type Uint64Source } from './prng.js'

/** One address to try. */
export interface Candidate {
  readonly host: ConninfoHost
  /** Position in the connection string's list, before any shuffle. */
  readonly hostIndex: number
  /** Where to connect: an IP address, or a socket directory starting with "/". */
  readonly address: string
  readonly port: number
}

/** What target_session_attrs asks about. */
export interface SessionState {
  readonly inHotStandby: boolean
  /** default_transaction_read_only */
  readonly defaultReadOnly: boolean
}

export interface WalkTools<T> {
  /** Addresses of a name in the resolver's order; rejects when there is none. */
  resolve(name: string): Promise<readonly string[]>
  /** Called at most once a walk, and only when hosts are to be shuffled. */
  makeRandom(): Uint64Source
  readonly clock: Clock
  /** Asked only when target_session_attrs is not "any". */
  sessionState(connection: T): Promise<SessionState>
  close(connection: T): void
  /** Told of each failed attempt, also when a later one succeeds; `sqlstate` is 08001 where no server answered. */
  onFailure?(candidate: Candidate | undefined, block: string, sqlstate: string): void
}

const isAddress = (name: string): boolean =>
  name.startsWith('/') || /^\d+\.\d+\.\d+\.\d+$/.test(name) || name.includes(':')

/** Why a session is not what was asked for; undefined when it fits. */
export function sessionMismatch(
  wanted: TargetSessionAttrs,
  state: SessionState,
): string | undefined {
  const readOnly = state.inHotStandby || state.defaultReadOnly
  switch (wanted) {
    case 'any':
      return undefined
    case 'read-write':
      return readOnly ? 'session is read-only' : undefined
    case 'read-only':
      return readOnly ? undefined : 'session is not read-only'
    case 'primary':
      return state.inHotStandby ? 'server is in hot standby mode' : undefined
    case 'standby':
    case 'prefer-standby':
      return state.inHotStandby ? undefined : 'server is not in hot standby mode'
  }
}

/** Hosts in the order of one walk. Draws from `random` only for load_balance_hosts=random. */
export function hostOrder(
  conninfo: Conninfo,
  random: () => Uint64Source,
): { host: ConninfoHost; hostIndex: number }[] {
  const order = conninfo.hosts.map((host, hostIndex) => ({ host, hostIndex }))
  if (conninfo.loadBalanceHosts === 'random') shuffleInPlace(order, random())
  return order
}

class Walk<T> {
  readonly #conninfo: Conninfo
  readonly #open: (candidate: Candidate, signal: AbortSignal) => Promise<T>
  readonly #tools: WalkTools<T>
  readonly #failures: AttemptFailure[] = []
  #random: Uint64Source | undefined

  constructor(
    conninfo: Conninfo,
    open: (candidate: Candidate, signal: AbortSignal) => Promise<T>,
    tools: WalkTools<T>,
  ) {
    this.#conninfo = conninfo
    this.#open = open
    this.#tools = tools
  }

  async run(): Promise<{ connection: T; candidate: Candidate }> {
    const order = hostOrder(this.#conninfo, this.#source)
    const wanted = this.#conninfo.targetSessionAttrs
    // Second pass of prefer-standby: no standby answered, so any server will do.
    const passes: TargetSessionAttrs[] = wanted === 'prefer-standby' ? [wanted, 'any'] : [wanted]
    for (const attrs of passes) {
      for (const entry of order) {
        const found = await this.#tryHost(entry.host, entry.hostIndex, attrs)
        if (found !== undefined) return found
      }
    }
    throw this.#error()
  }

  readonly #source = (): Uint64Source => {
    this.#random ??= this.#tools.makeRandom()
    return this.#random
  }

  async #tryHost(host: ConninfoHost, hostIndex: number, attrs: TargetSessionAttrs) {
    const addresses = await this.#addressesOf(host)
    for (const address of addresses) {
      const candidate = { host, hostIndex, address, port: host.port }
      const outcome = await this.#tryAddress(candidate, attrs)
      if (!('failure' in outcome)) return { connection: outcome.connection, candidate }
      this.#note(outcome.failure, candidate)
      if (outcome.failure.next === 'stop') throw this.#error()
      if (outcome.failure.next === 'host') return undefined
    }
    return undefined
  }

  async #addressesOf(host: ConninfoHost): Promise<string[]> {
    if (host.hostaddr !== undefined) return [host.hostaddr]
    if (isAddress(host.host)) return [host.host]
    try {
      const addresses = [...(await this.#tools.resolve(host.host))]
      if (this.#conninfo.loadBalanceHosts === 'random') shuffleInPlace(addresses, this.#source())
      return addresses
    } catch (error) {
      this.#note(resolveFailure(host.host, error), undefined)
      return []
    }
  }

  async #tryAddress(candidate: Candidate, attrs: TargetSessionAttrs) {
    let connection: T | undefined
    try {
      const opened = await this.#limited(candidate, attrs, (made) => {
        connection = made
      })
      return opened
    } catch (error) {
      if (connection !== undefined) this.#tools.close(connection)
      return { failure: attemptFailure(candidate, error) }
    }
  }

  /** Opening and asking for the session's state share one time limit; a connection that comes too late is closed. */
  async #limited(candidate: Candidate, attrs: TargetSessionAttrs, keep: (made: T) => void) {
    const limitMs = this.#conninfo.connectTimeoutMs
    const abort = new AbortController()
    let isLate = false
    const work = async (): Promise<{ connection: T } | { failure: AttemptFailure }> => {
      const connection = await this.#open(candidate, abort.signal)
      if (isLate) {
        this.#tools.close(connection)
        throw new Error('timeout expired')
      }
      keep(connection)
      if (attrs === 'any') return { connection }
      const mismatch = sessionMismatch(attrs, await this.#tools.sessionState(connection))
      if (mismatch === undefined) return { connection }
      this.#tools.close(connection)
      return {
        failure: { block: attemptBlock(candidate, mismatch), next: 'host', code: 'CONNECT_FAILED' },
      }
    }
    if (limitMs === undefined) return await work()
    const stop = new AbortController()
    const expired = this.#tools.clock.sleep(limitMs, stop.signal).then(() => 'expired' as const)
    const running = work()
    running.catch(() => undefined)
    const first = await Promise.race([running, expired]).finally(() => stop.abort())
    if (first !== 'expired') return first
    isLate = true
    abort.abort()
    const block = attemptBlock(candidate, 'timeout expired')
    throw Object.assign(new Error('timeout expired'), { attempt: { block } })
  }

  #note(failure: AttemptFailure, candidate: Candidate | undefined): void {
    this.#failures.push(failure)
    this.#tools.onFailure?.(candidate, failure.block, failure.sqlstate ?? '08001')
  }

  #error() {
    const last = this.#failures.at(-1)
    const message = this.#failures.map((failure) => failure.block).join('\n')
    const extras = {
      ...(last?.cause === undefined ? {} : { cause: last.cause }),
      ...(last?.hint === undefined ? {} : { hint: last.hint }),
    }
    return engineError(last?.code ?? 'CONNECT_FAILED', { message }, extras)
  }
}

/** Tries the candidates in libpq's order until `open` succeeds on one; the error holds a block per failed attempt. */
export async function connectCandidates<T>(
  conninfo: Conninfo,
  open: (candidate: Candidate, signal: AbortSignal) => Promise<T>,
  tools: WalkTools<T>,
): Promise<{ connection: T; candidate: Candidate }> {
  return await new Walk(conninfo, open, tools).run()
}

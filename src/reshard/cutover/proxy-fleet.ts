/**
 * All proxies that serve a database, as one gate: those whose consoles are named, and those that have registered on the
 * first shard of the side that serves now. A cutover does not begin while a live one was not reached.
 */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostTarget } from '../../pg/host-client.js'
import { LIVE_SECONDS } from '../../topology/epoch.js'
import { type ReshardSide, withShard } from '../side.js'
import { ConsoleGate } from './console-gate.js'
import type { PinnedClient, TrafficGate } from './traffic-gate.js'

interface ProxyFleetOptions {
  /** Consoles that are named. */
  readonly consoles: readonly HostTarget[]
  /** How to log in to the console of one that has registered; undefined: only who is named is reached. */
  readonly login: Pick<HostTarget, 'database' | 'user' | 'password'> | undefined
  /** The side that serves now; its name is that of the database. */
  readonly serving: ReshardSide
  readonly clock: Clock
  /** Who has not been heard of for long counts too: it may wake, and must not read by the old map for a moment. */
  readonly isStrict?: boolean
}

interface Registered {
  readonly id: string
  readonly host: string
  readonly port: number
}

/** Proxies of a side whose heartbeat is recent, by the server's clock. */
async function liveProxies(side: ReshardSide, isStrict: boolean): Promise<Registered[]> {
  const recent = `AND heartbeat_at > now() - make_interval(secs => ${LIVE_SECONDS})`
  const rows = await withShard(side.shards[0] as (typeof side.shards)[number], async (client) => {
    const [found] = await adminQuery(
      client,
      `SELECT to_regclass('pgshard.proxy') IS NOT NULL AS found`,
    )
    if (found?.['found'] !== 't') return []
    return adminQuery(
      client,
      `SELECT id, host, port::text AS port FROM pgshard.proxy
        WHERE database = $1 ${isStrict ? '' : recent} ORDER BY id`,
      [side.name],
    )
  })
  return rows.map((row) => ({
    id: row['id'] as string,
    host: row['host'] as string,
    port: Number(row['port']),
  }))
}

const anywhere = ['0.0.0.0', '*', '', '::']

export class ProxyFleet implements TrafficGate {
  readonly #options: ProxyFleetOptions
  #gates: ConsoleGate[]
  /** Marks of the proxies that were reached before anybody was paused. */
  #known: ReadonlySet<string> = new Set()

  constructor(options: ProxyFleetOptions) {
    this.#options = options
    this.#gates = options.consoles.map((console) => new ConsoleGate(console, options.clock))
  }

  /** @throws RESHARD_PROXY, RESHARD_PROXY_UNREACHED */
  async open(): Promise<void> {
    await Promise.all(this.#gates.map((gate) => gate.open()))
    const { login, clock } = this.#options
    for (const proxy of await this.#unreached()) {
      if (!login) continue
      // One that listens everywhere is asked on this machine: another says its own address.
      const host = anywhere.includes(proxy.host) ? '127.0.0.1' : proxy.host
      const gate = new ConsoleGate({ host, port: proxy.port, ...login }, clock)
      try {
        await gate.open()
        const ids = await gate.proxyIds()
        if (ids.has(proxy.id)) this.#gates.push(gate)
        else await gate.close()
      } catch {
        // Named below, with all that were not reached.
        await gate.close()
      }
    }
    this.#refuse(await this.#unreached())
  }

  /** A worker or a proxy that came since was not paused. @throws RESHARD_PROXY_SILENT */
  async confirm(): Promise<void> {
    const { serving, isStrict = false } = this.#options
    if (!isStrict) return
    const all = await liveProxies(serving, isStrict)
    this.#refuse(all.filter(({ id }) => !this.#known.has(id)))
  }

  #refuse(left: readonly Registered[]): void {
    if (left.length === 0) return
    const { serving, isStrict } = this.#options
    const proxies = left
      .map(({ id, host, port }) => `${host}:${port} (${isStrict ? id : id.slice(0, 8)})`)
      .join(', ')
    const facts = { count: left.length, database: serving.name, proxies }
    if (isStrict) throw engineError('RESHARD_PROXY_SILENT', facts)
    throw engineError('RESHARD_PROXY_UNREACHED', { ...facts, seconds: LIVE_SECONDS })
  }

  async #unreached(): Promise<Registered[]> {
    const { serving, isStrict = false } = this.#options
    const live = await liveProxies(serving, isStrict)
    if (live.length === 0) return []
    const reached = await this.#reached()
    return live.filter(({ id }) => !reached.has(id))
  }

  async #reached(): Promise<ReadonlySet<string>> {
    const ids = await Promise.all(this.#gates.map((gate) => gate.proxyIds()))
    return new Set(ids.flatMap((some) => [...some]))
  }

  async pinned(database: string): Promise<PinnedClient[]> {
    return (await Promise.all(this.#gates.map((gate) => gate.pinned(database)))).flat()
  }

  async endPinned(database: string): Promise<void> {
    await Promise.all(this.#gates.map((gate) => gate.endPinned(database)))
  }

  async pause(database: string, timeoutMs: number): Promise<void> {
    if (this.#options.isStrict) this.#known = await this.#reached()
    await all(this.#gates.map((gate) => gate.pause(database, timeoutMs)))
  }

  async reload(): Promise<void> {
    await all(this.#gates.map((gate) => gate.reload()))
  }

  async resume(database: string): Promise<void> {
    await all(this.#gates.map((gate) => gate.resume(database)))
  }

  async follow(database: string): Promise<void> {
    await all(this.#gates.map((gate) => gate.follow(database)))
  }

  async ready(database: string, timeoutMs: number): Promise<boolean> {
    const ends = await Promise.all(this.#gates.map((gate) => gate.ready(database, timeoutMs)))
    return ends.every((isReady) => isReady)
  }

  async close(): Promise<void> {
    await Promise.all(this.#gates.map((gate) => gate.close()))
  }
}

/** Waits for all, then fails as the first that failed did. */
async function all(works: readonly Promise<void>[]): Promise<void> {
  for (const end of await Promise.allSettled(works)) if (end.status === 'rejected') throw end.reason
}

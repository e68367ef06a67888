/** Hosts that a test makes answer, recover, lie silent or die; and pools over them on a clock that the test moves. */
import { silentLog } from '../../../src/base/log.js'
import { EngineError, engineError } from '../../../src/errors/engine-error.js'
import type { HostDefinition, PoolDefinition } from '../../../src/pool/definition.js'
import { Pools } from '../../../src/pool/pool-map.js'
import type { ServerCheckout } from '../../../src/pool/shard-pools.js'
import type { UserPools } from '../../../src/pool/user-pools.js'
import type { ServerConnection } from '../../../src/server/server-connection.js'
import { noTraffic } from '../../../src/server/traffic.js'
import { FakeClock } from '../../support/fake-clock.js'
import { definePool } from './define.js'

/** Hosts by port: what they say, and whether they answer. */
export class FakeHosts {
  down = new Set<number>()
  recovering = new Set<number>()
  lsn = new Map<number, number>()
  timeline = new Map<number, number>()
  /** Accept connections and never answer. */
  silent = new Set<number>()
  /** SQLSTATE with which a login is refused. */
  refusals = new Map<number, string>()
  asked: number[] = []
  servers: ServerConnection[] = []
  queries: { port: number; sql: string }[] = []
  pending: { server: object; reject: (error: unknown) => void }[] = []
  /** Take a connection and say nothing. */
  holes = new Set<number>()
  opened: number[] = []

  readonly clock: FakeClock

  constructor(clock: FakeClock) {
    this.clock = clock
  }

  open = async (
    target: { host: string; port: number },
    { timeoutMs = 0 }: { timeoutMs?: number } = {},
  ): Promise<ServerConnection> => {
    const { port } = target
    if (this.down.has(port))
      throw engineError('NET_CONNECT_FAILED', { address: `h:${port}`, reason: 'ECONNREFUSED' })
    if (this.holes.has(port)) {
      await this.clock.sleep(timeoutMs)
      throw engineError('SERVER_START_TIMEOUT', { server: `h:${port}`, limit: timeoutMs })
    }
    const refused = this.refusals.get(port)
    if (refused !== undefined)
      throw new EngineError('SERVER_ERROR' as never, 'no', { sqlstate: refused, message: 'no' }, {})
    this.opened.push(port)
    const hosts = this
    const server = {
      target,
      label: `h:${port}`,
      get parameters() {
        return new Map([['in_hot_standby', hosts.recovering.has(port) ? 'on' : 'off']])
      },
      lost: undefined as unknown,
      onClose: undefined as (() => void) | undefined,
      get closed() {
        return this.lost !== undefined
      },
      get isIdle() {
        return this.lost === undefined
      },
      traffic: noTraffic(),
      async query(sql: string) {
        hosts.queries.push({ port, sql })
        if (hosts.silent.has(port))
          await new Promise((_, reject) => hosts.pending.push({ server, reject }))
        if (hosts.down.has(port)) {
          hosts.die(server as unknown as ServerConnection)
          throw engineError('SERVER_LOST', { server: `h:${port}` })
        }
        if (sql.includes('pg_is_in_recovery')) hosts.asked.push(port)
        const row = sql.includes('pg_is_in_recovery')
          ? [
              hosts.recovering.has(port) ? 't' : 'f',
              String(hosts.lsn.get(port) ?? 1),
              String(hosts.timeline.get(port) ?? 1),
              'one',
            ]
          : ['1']
        return [{ columns: [], rows: [row], tag: 'SELECT 1' }]
      },
      close() {
        this.lost ??= engineError('SERVER_CLOSED_BY_US', { server: `h:${port}` })
      },
      destroy() {
        if (this.lost) return
        const error = engineError('SERVER_CLOSED_BY_US', { server: `h:${port}` })
        this.lost = error
        for (const one of hosts.pending) if (one.server === server) one.reject(error)
        this.onClose?.()
      },
    }
    this.servers.push(server as unknown as ServerConnection)
    return server as unknown as ServerConnection
  }

  /** The other side is gone. */
  die(server: ServerConnection): void {
    if (server.lost) return
    server.lost = engineError('SERVER_LOST', { server: server.label })
    server.onClose?.()
  }

  /** As kill -9: nothing listens any more and every connection ends. */
  kill(port: number): void {
    this.down.add(port)
    for (const server of this.servers) if (server.target.port === port) this.die(server)
  }
}

export function start(hosts: readonly HostDefinition[], rest: Partial<PoolDefinition> = {}) {
  const clock = new FakeClock()
  const fake = new FakeHosts(clock)
  const pools = new Pools({
    clock,
    log: silentLog,
    random: () => 0.5,
    openServer: fake.open,
    roleCheckTimeoutMs: 1000,
  })
  pools.apply([definePool([hosts], rest)])
  const user = pools.shardPools('u', 'app') as UserPools
  return { clock, fake, pools, user }
}

export async function portOf(user: UserPools, role: 'primary' | 'any'): Promise<number> {
  const checkout: ServerCheckout = await user.checkout(0, role)
  checkout.release()
  return checkout.resource.target.port
}

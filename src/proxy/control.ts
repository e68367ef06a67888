/** What the console may do to the proxy, done on its parts. */
import type { PoolSelector } from '../admin/admin-command.js'
import type { ProxyControl } from '../admin/proxy-control.js'
import { engineError } from '../errors/engine-error.js'
import type { Pools } from '../pool/pool-map.js'
import type { ClientRegistry } from './client-registry.js'
import { ownId, type WorkerPlace } from './fleet.js'

export interface ControlParts {
  readonly pools: Pools
  readonly clients: ClientRegistry
  readonly place: WorkerPlace
  reload(): Promise<void>
  /** Looks whether another side serves the database by now, and follows it. */
  followEpoch(database: string): Promise<void>
  shutdown(): void
}

export function makeControl(parts: ControlParts): ProxyControl {
  const { pools, clients, place } = parts
  /** A mistyped name must not pass for success. @throws ADMIN_NO_SUCH */
  const found = (selector: PoolSelector): PoolSelector => {
    const { user, database } = selector
    const nothing = pools.all(selector)[Symbol.iterator]().next().done
    if (!nothing || (user === undefined && database === undefined)) return selector
    const name = user === undefined ? (database ?? '') : `${user} ${database}`
    throw engineError('ADMIN_NO_SUCH', { kind: 'pool', name, where: 'SHOW POOLS' })
  }
  const poolsById = (id: number | undefined) => {
    if (id === undefined) return [...pools.all()]
    const pool = pools.byId(ownId(place, id) ?? -1)
    if (pool) return [pool]
    throw engineError('ADMIN_NO_SUCH', { kind: 'pool', name: id, where: 'SHOW POOLS' })
  }
  return {
    pause: (selector) => pools.pause(found(selector)),
    resume: async (selector) => {
      const { database } = found(selector)
      // What waits must not be sent to a side that was left meanwhile.
      if (database !== undefined) await parts.followEpoch(database)
      pools.resume(selector)
    },
    reconnect: (selector) => pools.recycle(found(selector)),
    reload: () => parts.reload(),
    shutdown: () => parts.shutdown(),
    kill: (database) => {
      // Not awaited: servers come back as their clients end.
      void pools.pause(found({ database }))
      for (const { client } of [...clients.all()])
        if (client.database === database) client.end(true)
    },
    killClient: (id) => {
      const client = clients.byId(ownId(place, id) ?? -1)
      if (!client)
        throw engineError('ADMIN_NO_SUCH', { kind: 'client', name: id, where: 'SHOW CLIENTS' })
      client.end(true)
    },
    ban: (id) => {
      for (const pool of poolsById(id)) pool.health.banByHand()
    },
    unban: (id) => {
      for (const pool of poolsById(id)) pool.health.lift()
    },
    restartWorkers: async () => {
      const instead = 'this proxy is one process (serve --workers 1): start it anew'
      throw engineError('ADMIN_UNSUPPORTED', { command: 'RESTART WORKERS', instead })
    },
  }
}

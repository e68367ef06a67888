/** What the console may do to the proxy, done on its parts. */
import type { PoolSelector } from '../../admin/admin-command.js'
import type { ProxyControl } from '../../admin/proxy-control.js'
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import type { OpenServer } from '../../pool/definition.js'
import type { Pools } from '../../pool/pool-map.js'
import type { ClientRegistry } from '../clients/client-registry.js'
import { ownId, type WorkerPlace } from '../fleet.js'
import type { InForce } from '../in-force.js'
import { findPeers } from './peers.js'
import { probe } from './probe.js'
import type { Standing } from './standing.js'

export interface ControlParts {
  readonly clock: Clock
  readonly openServer: OpenServer
  readonly pools: Pools
  readonly clients: ClientRegistry
  readonly place: WorkerPlace
  readonly standing: Standing
  inForce(): InForce
  /** `settings`: keys that stand above the files until the next one. */
  reload(settings?: ReadonlyMap<string, string>): Promise<void>
  /** Looks whether another side serves the database by now, and follows it. */
  followEpoch(database: string): Promise<void>
  /** Pauses again what must not be served whatever is asked for. */
  keepHeld(): void
  shutdown(): void
}

export function makeControl(parts: ControlParts): ProxyControl {
  const { pools, clients, place, standing } = parts
  const letOn = resumer(parts)
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
  /** @throws ADMIN_NO_SUCH */
  const known = (database: string): string => {
    if (parts.inForce().config.databases.some(({ name }) => name === database)) return database
    throw engineError('ADMIN_NO_SUCH', {
      kind: 'database',
      name: database,
      where: 'SHOW DATABASES',
    })
  }
  return {
    pause: (selector) => pools.pause(found(selector)),
    resume: async (selector) => {
      const { database } = found(selector)
      // What waits must not be sent to a side that was left meanwhile.
      if (database !== undefined) await parts.followEpoch(database)
      else if (selector.user === undefined) standing.isSuspended = false
      letOn(selector)
    },
    reconnect: (selector) => pools.recycle(found(selector)),
    ...reloading(parts),
    shutdown: () => parts.shutdown(),
    kill: (database) => {
      // Not awaited: servers come back as their clients end.
      void pools.pause(database === undefined ? {} : found({ database }))
      for (const { client, isConsole } of [...clients.all()])
        if (database === undefined ? !isConsole : client.database === database) client.end(true)
    },
    suspend: async () => {
      standing.isSuspended = true
      await pools.pause()
    },
    maintenance: (isOn, database) => {
      const selector = database === undefined ? {} : found({ database })
      // Not awaited: what runs may run to its end.
      if (isOn) void pools.pause(selector)
      else letOn(selector)
    },
    waitClose: (database) =>
      waitForReplaced(parts, database === undefined ? {} : found({ database })),
    disable: (database) => void standing.disabled.add(known(database)),
    enable: (database) => void standing.disabled.delete(known(database)),
    healthcheck: async (id) => {
      await Promise.all(poolsById(id).map((pool) => pool.lookNow()))
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
    ...looking(parts),
    restartWorkers: async () => {
      const instead = 'this proxy is one process (serve --workers 1): start it anew'
      throw engineError('ADMIN_UNSUPPORTED', { command: 'RESTART WORKERS', instead })
    },
  }
}

/** Pools that must not be served are not let on, whatever is asked for. */
const resumer = (parts: ControlParts) => (selector: PoolSelector) => {
  parts.pools.resume(selector)
  parts.keepHeld()
}

const LOOK_MS = 20

/** Resolves when every server that RECONNECT or RELOAD wants to be replaced has come back and was closed. */
async function waitForReplaced(
  { pools, clock }: ControlParts,
  selector: PoolSelector,
): Promise<void> {
  const isPending = () =>
    [...pools.all(selector)].some(({ pool }) =>
      [...pool.resources()].some(({ isReplaced }) => isReplaced),
    )
  while (isPending()) await clock.sleep(LOOK_MS)
}

/** RELOAD in its ways; what was SET stands above the files until the next one. */
function reloading(parts: ControlParts): Pick<ProxyControl, 'reload' | 'forceReload' | 'set'> {
  let settings: ReadonlyMap<string, string> = new Map()
  const { pools } = parts
  return {
    reload: async () => {
      await parts.reload()
      settings = new Map()
    },
    forceReload: async () => {
      await parts.reload()
      settings = new Map()
      pools.recycle()
    },
    set: async (name, value) => {
      const next = new Map([...settings, [name, value]])
      await parts.reload(next)
      settings = next
    },
  }
}

/** Commands that look, or only cost time. */
function looking(parts: ControlParts): Pick<ProxyControl, 'reset' | 'probe' | 'peers'> {
  const { pools } = parts
  return {
    reset: (what) => {
      for (const knowledge of parts.inForce().knowledge.values()) {
        // What clients prepare from now on has other names, so servers close what they have as they meet it.
        if (what === 'prepared') knowledge.statements.schemaChanged()
        else void knowledge.refresh()
      }
    },
    probe: (url) => probe(url, parts.clock, parts.openServer),
    peers: () => findPeers(pools, parts.openServer),
  }
}

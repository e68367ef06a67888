/** From a state to servers that answer: data directories made where they are not whole, servers started or adopted, replicas streaming. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.js'
import { engineError, isEngineError } from '../errors/engine-error.js'
import type { Binaries } from './binaries.js'
import type { ClusterState, InstanceState } from './cluster-state.js'
import {
  type Instance,
  logTail,
  PortTaken,
  startInstance,
  stopInstance,
  writeSettings,
} from './instance.js'
import { askInstance } from './instance-query.js'
import { choosePorts, instanceOf } from './plan-cluster.js'
import { findPostmaster } from './postmaster.js'
import { giveTo } from './run-as.js'
import { giveNewSystemIdentifier } from './system-identifier.js'
import { cloneDirectory, hostRules, runSingleUser, SUPERUSER, template } from './template.js'

const STREAMING_DEADLINE_MS = 60_000
const PORT_TRIES = 5

/** What the steps of a start share. */
export interface Site {
  state: ClusterState
  binaries: Binaries
  clock: Clock
  /** Remembers the state. */
  save(): void
}

const replicasOf = (state: ClusterState, shard: number): InstanceState[] =>
  state.instances.filter((server) => server.role === 'replica' && server.shard === shard)

export const primariesOf = (state: ClusterState): InstanceState[] =>
  state.instances.filter(({ role }) => role === 'primary')

const literal = (value: string): string => `'${value.replaceAll("'", "''")}'`

/** Makes every data directory from the template; what a start that died left is made anew. */
export async function initializeAll(site: Site): Promise<void> {
  const { state, binaries, clock } = site
  const source = template(binaries, state.user, clock)
  for (const server of state.instances) {
    await stopInstance(instanceOf(state, server), clock, 'immediate')
    rmSync(server.dataDirectory, { recursive: true, force: true })
  }
  for (const primary of primariesOf(state)) {
    cloneDirectory(source, primary.dataDirectory)
    giveNewSystemIdentifier(primary.dataDirectory)
    if (state.password !== undefined) {
      const sql = `ALTER ROLE ${SUPERUSER} PASSWORD ${literal(state.password)};`
      runSingleUser(binaries, state.user, primary.dataDirectory, [sql])
      writeFileSync(join(primary.dataDirectory, 'pg_hba.conf'), hostRules('scram-sha-256'))
    }
    for (const replica of replicasOf(state, primary.shard))
      cloneDirectory(primary.dataDirectory, replica.dataDirectory)
  }
}

/** A value inside a connection string, where a backslash escapes. */
const conninfoValue = (value: string): string => `'${value.replace(/[\\']/g, '\\$&')}'`

/** Where a replica streams from. */
function replicaSettings(state: ClusterState, replica: InstanceState): Record<string, string> {
  if (replica.role === 'primary') return {}
  const primary = primariesOf(state).find(({ shard }) => shard === replica.shard)!
  const secret = state.password === undefined ? '' : ` password=${conninfoValue(state.password)}`
  return {
    primary_conninfo: `host=127.0.0.1 port=${primary.port} user=${SUPERUSER} application_name=${replica.name}${secret}`,
    primary_slot_name: replica.name,
  }
}

function writeAllSettings(site: Site, firstStart: boolean): void {
  const { state } = site
  for (const server of state.instances) {
    if (findPostmaster(server.dataDirectory)) continue // adopted as it is
    const more = { ...state.settings, ...replicaSettings(state, server) }
    writeSettings(instanceOf(state, server), more)
    if (server.role !== 'replica' || !firstStart) continue
    const signal = join(server.dataDirectory, 'standby.signal')
    writeFileSync(signal, '')
    giveTo(state.user, signal)
  }
}

/** Waits for all and throws the first failure only then, so that nothing is still at work behind an error. */
async function allSettled(work: Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  const failed = results.filter((result) => result.status === 'rejected')
  const reason = failed.find(({ reason }) => isEngineError(reason)) ?? failed[0]
  if (reason) throw reason.reason
}

/** Starts every server; takes other ports when one was taken in the meantime. @throws CLUSTER_START */
export async function startAll(
  site: Site,
  basePort: number | undefined,
  firstStart: boolean,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    writeAllSettings(site, firstStart)
    try {
      await startPrimariesThenReplicas(site)
      return
    } catch (error) {
      if (!(error instanceof PortTaken)) throw error
      const taken = site.state.instances.find(({ name }) => name === error.message)!
      if (basePort !== undefined || attempt === PORT_TRIES)
        throw engineError('CLUSTER_PORT_IN_USE', { port: taken.port }, { cause: error })
      await moveTo(site, taken)
    }
  }
}

/** Gives a server another port; its replicas, which know the old one, are stopped and started anew. */
async function moveTo(site: Site, server: InstanceState): Promise<void> {
  const [port] = await choosePorts(1)
  server.port = port!
  site.save()
  if (server.role === 'primary')
    for (const replica of replicasOf(site.state, server.shard))
      await stopInstance(instanceOf(site.state, replica), site.clock)
}

async function startPrimariesThenReplicas(site: Site): Promise<void> {
  const start = async (server: InstanceState): Promise<void> => {
    const found = await startInstance(instanceOf(site.state, server), site.clock)
    server.port = found.port
  }
  const { state } = site
  await allSettled(primariesOf(state).map(start))
  await allSettled(primariesOf(state).map((primary) => prepare(site, primary)))
  await allSettled(state.instances.filter(({ role }) => role === 'replica').map(start))
  await allSettled(primariesOf(state).map((primary) => waitForStreaming(site, primary)))
}

const ask = (
  state: ClusterState,
  server: InstanceState,
  sql: string,
  values: (string | null)[] = [],
) =>
  askInstance(
    { port: server.port, database: 'postgres', user: SUPERUSER, password: state.password },
    sql,
    values,
  )

/** The slots of the replicas and the database, where they are not there yet. */
async function prepare(site: Site, primary: InstanceState): Promise<void> {
  const { state } = site
  for (const { name } of replicasOf(state, primary.shard))
    await ask(
      state,
      primary,
      `SELECT pg_create_physical_replication_slot($1, true)
       WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)`,
      [name],
    )
  const there = await ask(state, primary, 'SELECT FROM pg_database WHERE datname = $1', [
    state.database,
  ])
  if (there.length === 0)
    await ask(state, primary, `CREATE DATABASE "${state.database.replaceAll('"', '""')}"`)
}

/** Until every replica streams and has what the primary had when we asked. @throws CLUSTER_REPLICA */
async function waitForStreaming(site: Site, primary: InstanceState): Promise<void> {
  const { state, clock } = site
  const names = replicasOf(state, primary.shard).map(({ name }) => name)
  if (names.length === 0) return
  const [now] = await ask(state, primary, 'SELECT pg_current_wal_lsn()::text AS lsn')
  const deadline = clock.monotonicMs() + STREAMING_DEADLINE_MS
  while (clock.monotonicMs() < deadline) {
    const rows = await ask(
      state,
      primary,
      `SELECT FROM pg_stat_replication
       WHERE state = 'streaming' AND application_name = ANY(string_to_array($1, ',')) AND replay_lsn >= $2::pg_lsn`,
      [names.join(), now?.['lsn'] ?? null],
    )
    if (rows.length === names.length) return
    await clock.sleep(20)
  }
  const instance: Instance = instanceOf(state, replicasOf(state, primary.shard)[0]!)
  throw engineError(
    'CLUSTER_REPLICA',
    { name: primary.name, log: instance.logFile },
    { detail: logTail(instance.logFile) },
  )
}

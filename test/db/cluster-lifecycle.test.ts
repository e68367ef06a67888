import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, inject, test } from 'vitest'
import {
  clusterStatus,
  destroyCluster,
  hasCluster,
  type StartOptions,
  startCluster,
  stopCluster,
} from '../../src/cluster/cluster.js'
import { askInstance } from '../../src/cluster/instance-query.js'
import { findPostmaster } from '../../src/cluster/postmaster.js'
import { freePort } from '../support/free-port.js'
import { waitFor } from '../support/wait-for.js'

let directory: string
let count = 0
const used: string[] = []
beforeEach(() => {
  directory = join(inject('runDirectory'), `life-${process.pid}-${++count}`)
  used.push(directory)
})
afterAll(async () => {
  for (const one of used.filter(hasCluster)) await destroyCluster(one)
})

const start = (options: Partial<StartOptions> = {}) =>
  startCluster({ directory, shards: 2, settings: { fsync: 'off' }, ...options })

const ask = async (port: number, sql: string, password?: string) =>
  askInstance({ port, database: 'app', user: 'postgres', password }, sql)

/** False also for one that has ended and waits to be buried. */
function isRunning(pid: number | undefined): boolean {
  try {
    process.kill(pid!, 0)
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

const signal = (pid: number | undefined, name: NodeJS.Signals) => process.kill(pid!, name)

test('start, stop, start again with the same data and ports, destroy', async () => {
  const first = await start()
  const ports = first.servers.map(({ port }) => port)
  await ask(ports[1]!, 'CREATE TABLE kept AS SELECT 42 AS answer')
  expect(await stopCluster(directory)).toBe(2)
  expect((await clusterStatus(directory)).servers.map(({ state }) => state)).toEqual([
    'stopped',
    'stopped',
  ])
  const second = await start({ shards: undefined })
  expect(second.servers.map(({ port }) => port)).toEqual(ports)
  expect(await ask(ports[1]!, 'TABLE kept')).toEqual([{ answer: '42' }])
  const pids = second.servers.map(({ pid }) => pid)
  expect(await destroyCluster(directory)).toBe(2)
  // whoever adopts an ended server may take a moment to bury it
  await waitFor(() => pids.every((pid) => !isRunning(pid)), { what: 'the end of the servers' })
  expect(existsSync(directory)).toBe(false)
  await expect(clusterStatus(directory)).rejects.toMatchObject({ code: 'CLUSTER_NONE' })
})

test('replicas stream and may be asked at once', async () => {
  const cluster = await start({ shards: 1, replicas: 2 })
  const [primary, ...replicas] = cluster.servers
  expect(replicas).toHaveLength(2)
  await ask(primary!.port, 'CREATE TABLE t AS SELECT generate_series(1, 1000) AS n')
  for (const { port } of replicas) {
    await waitFor(async () => (await ask(port, "SELECT to_regclass('t') AS t"))[0]?.['t'])
    expect(await ask(port, 'SELECT count(*) FROM t')).toEqual([{ count: '1000' }])
  }
  const { servers } = await clusterStatus(directory)
  expect(servers.map(({ actualRole }) => actualRole)).toEqual(['primary', 'replica', 'replica'])
  await destroyCluster(directory)
})

describe('after a crash', () => {
  test('adopts servers that still run', async () => {
    const before = await start()
    const notes: string[] = []
    const after = await start({ onNote: (note) => notes.push(note) })
    expect(after.servers).toEqual(before.servers)
    expect(notes).toEqual(['2 of 2 servers were running already'])
  })

  test('starts a killed server again, with what was committed', async () => {
    const cluster = await start({ shards: 1, replicas: 1, settings: {} })
    const [primary] = cluster.servers
    await ask(primary!.port, 'CREATE TABLE t AS SELECT 1 AS n')
    signal(primary!.pid, 'SIGKILL')
    await waitFor(() => findPostmaster(primary!.dataDirectory) === undefined)
    const again = await start({ shards: 1, settings: {} })
    expect(again.servers[0]!.pid).not.toBe(primary!.pid)
    expect(await ask(again.servers[0]!.port, 'TABLE t')).toEqual([{ n: '1' }])
    await destroyCluster(directory)
  })

  test('makes a half-made cluster anew', async () => {
    const cluster = await start()
    await stopCluster(directory)
    const file = join(directory, 'cluster.json')
    const state = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...state, initialized: false }))
    writeFileSync(join(cluster.servers[0]!.dataDirectory, 'PG_VERSION'), 'broken')
    await start()
    expect((await clusterStatus(directory)).servers.map(({ state }) => state)).toEqual([
      'running',
      'running',
    ])
  })

  test('never signals a process that only has the number of a server', async () => {
    const cluster = await start({ shards: 1 })
    const [server] = cluster.servers
    await stopCluster(directory)
    const stranger = spawn('/bin/sh', ['-c', 'read line'], { stdio: ['pipe', 'ignore', 'ignore'] })
    const pidFile = join(server!.dataDirectory, 'postmaster.pid')
    writeFileSync(pidFile, `${stranger.pid}\n${server!.dataDirectory}\n`)
    expect(await stopCluster(directory)).toBe(0)
    await start({ shards: 1 })
    await destroyCluster(directory)
    expect(stranger.exitCode).toBe(null)
    expect(stranger.signalCode).toBe(null)
    stranger.stdin.end()
  })

  test('takes over the lock of a process that died', async () => {
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, 'cluster.lock'), '999999999 1')
    await start({ shards: 1 })
    expect(existsSync(join(directory, 'cluster.lock'))).toBe(false)
  })
})

test('two starts at once give one cluster', async () => {
  const [a, b] = await Promise.all([start(), start()])
  expect(a.servers).toEqual(b.servers)
})

test('a password is asked for, and not shown', async () => {
  const password = "it's \\secret"
  const cluster = await start({ shards: 1, replicas: 1, password })
  const { port } = cluster.servers[0]!
  expect(await ask(port, 'SELECT 1 AS one', password)).toEqual([{ one: '1' }])
  await expect(ask(port, 'SELECT 1', 'wrong')).rejects.toThrow('password')
  expect(new URL(cluster.servers[0]!.url).password).toBe(
    encodeURIComponent(password).replace("'", "'"),
  )
})

describe('ports', () => {
  test('a base port is kept to, and in use is an error that leaves nothing', async () => {
    const port = await freePort()
    const blocker = createServer().listen(port, '127.0.0.1')
    await waitFor(() => blocker.listening)
    await expect(start({ basePort: port })).rejects.toMatchObject({
      code: 'CLUSTER_PORT_IN_USE',
      exitCode: 5,
    })
    expect(hasCluster(directory)).toBe(false)
    await new Promise((resolve) => blocker.close(resolve))
    const cluster = await start({ basePort: port })
    expect(cluster.servers.map((server) => server.port)).toEqual([port, port + 1])
    await destroyCluster(directory)
  })

  test('a port taken while stopped is replaced, and the files say so', async () => {
    const cluster = await start({ shards: 1, replicas: 1 })
    const { port } = cluster.servers[0]!
    await stopCluster(directory)
    const blocker = createServer().listen(port, '127.0.0.1')
    await waitFor(() => blocker.listening)
    const again = await start({ shards: 1 })
    const moved = again.servers[0]!.port
    expect(moved).not.toBe(port)
    expect(readFileSync(join(directory, 'pgdog.toml'), 'utf8')).toContain(`port = ${moved}\n`)
    await new Promise((resolve) => blocker.close(resolve))
    await destroyCluster(directory)
  })
})

test('an edited pgdog.toml is kept', async () => {
  await start({ shards: 1 })
  const file = join(directory, 'pgdog.toml')
  writeFileSync(file, `${readFileSync(file, 'utf8')}# mine\n`)
  await stopCluster(directory)
  await start({ shards: 1 })
  expect(readFileSync(file, 'utf8')).toContain('# mine')
})

test('another shape, other binaries, a broken state are refused with a code', async () => {
  await start({ shards: 1 })
  await expect(start({ shards: 3 })).rejects.toMatchObject({ code: 'CLUSTER_DIFFERENT' })
  await expect(start({ shards: 1, postgresVersion: 15 })).rejects.toMatchObject({
    code: 'CLUSTER_DIFFERENT',
  })
  await destroyCluster(directory)
  await expect(start({ binDirectory: '/usr' })).rejects.toMatchObject({
    code: 'CLUSTER_BAD_BINARIES',
  })
  writeFileSync(join(directory, 'cluster.json'), '{')
  await expect(start()).rejects.toMatchObject({ code: 'CLUSTER_STATE', exitCode: 3 })
  writeFileSync(join(directory, 'cluster.json'), '{}')
  await expect(stopCluster(directory)).rejects.toMatchObject({ code: 'CLUSTER_STATE' })
  rmSync(join(directory, 'cluster.json'))
})

/**
 * How much memory an idle client costs `pgshard serve`, and whether all are served.
 *   node bench/idle-clients.mjs [--clients 10000] [--processes 4] [--server postgres://…] [--node-flags "…"] [--results FILE]
 * Starts a PostgreSQL of its own unless one is given, serve in front of it, and processes that log in and stay.
 * Resident memory of serve is read before the first of them (after a warm-up that connects and leaves), when all have
 * logged in, and when each has run one query. Target: at most 14 kB a client, goal 10, none refused. Exit 1 when missed.
 */
import { fork, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { keepFigure } from './results.mjs'

const TARGET_KB = 14
const GOAL_KB = 10
const WARM_UP = 500
/** Logins under way at once in each process: a storm is another test's. */
const AT_ONCE = 50

const root = fileURLToPath(new URL('..', import.meta.url))
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** StartupMessage of protocol 3.0. */
function startup(user, database) {
  const body = Buffer.from(`user\0${user}\0database\0${database}\0\0`)
  const packet = Buffer.alloc(8 + body.length)
  packet.writeInt32BE(packet.length, 0)
  packet.writeInt32BE(196_608, 4)
  body.copy(packet, 8)
  return packet
}

const query = Buffer.from('Q\0\0\0\x0dselect 1\0', 'latin1')
const readyForQuery = Buffer.from('Z\0\0\0\x05I', 'latin1')

/** Resolves at the next ReadyForQuery; rejects on an error or the end. */
function ready(socket) {
  return new Promise((resolve, reject) => {
    let tail = Buffer.alloc(0)
    const done = (settle, value) => {
      socket.off('data', onData)
      socket.off('close', onClose)
      settle(value)
    }
    const onClose = () => done(reject, new Error(`refused: ${tail.toString('latin1')}`))
    const onData = (chunk) => {
      tail = Buffer.concat([tail, chunk])
      if (tail.subarray(-6).equals(readyForQuery)) done(resolve)
    }
    socket.on('data', onData)
    socket.on('close', onClose)
  })
}

async function logIn(port, user, number) {
  const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (number % 8)}` })
  socket.on('error', () => undefined)
  socket.write(startup(user, 'app'))
  await ready(socket)
  return socket
}

/** The part of a process that holds clients: does what its parent says. */
function holdClients() {
  let sockets = []
  process.on('message', async ({ kind, port, user, from, count }) => {
    let failed = 0
    if (kind === 'connect') {
      let next = from
      const lane = async () => {
        while (next < from + count) {
          try {
            sockets.push(await logIn(port, user, next++))
          } catch (error) {
            if (failed++ === 0) console.error(error.message)
          }
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, lane))
    } else if (kind === 'query') {
      for (const socket of sockets) {
        const answer = ready(socket)
        socket.write(query)
        await answer.catch(() => failed++)
      }
    } else {
      for (const socket of sockets) socket.destroy()
      sockets = []
    }
    process.send({ connected: sockets.length, failed })
  })
}

const ask = (child, message) =>
  new Promise((resolve) => {
    child.once('message', resolve)
    child.send(message)
  })

function statusKb(pid, name) {
  const line = readFileSync(`/proc/${pid}/status`, 'utf8').match(
    new RegExp(`^${name}:\\s+(\\d+)`, 'm'),
  )
  return Number(line[1])
}

/** Resident memory when it has stopped moving. */
async function settledKb(pid) {
  let last = statusKb(pid, 'VmRSS')
  for (let i = 0; i < 20; i++) {
    await wait(500)
    const now = statusKb(pid, 'VmRSS')
    if (Math.abs(now - last) < 256 && i >= 3) return now
    last = now
  }
  return last
}

async function startServe(server, folder, nodeFlags) {
  const { hostname, port, username, pathname } = new URL(server)
  const config = join(folder, 'pgdog.toml')
  const users = join(folder, 'users.toml')
  writeFileSync(
    config,
    `[general]
host = "127.0.0.1"
port = 0
auth_type = "trust"
max_client_conn = 100000
[admin]
password = "console"
[[databases]]
name = "app"
host = "${hostname}"
port = ${port}
database_name = "${pathname.slice(1)}"
`,
  )
  writeFileSync(users, `[[users]]\nname = "${username}"\ndatabase = "app"\npassword = "unused"\n`)
  const child = spawn(
    process.execPath,
    [...nodeFlags, join(root, 'bin/run.js'), 'serve', '--config', config, '--users', users],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  const listening = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      output += chunk
      const match = /listening on \S+:(\d+)/.exec(output)
      if (match) resolve(Number(match[1]))
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('exit', () => reject(new Error(`serve ended: ${output}`)))
  })
  return { child, port: listening, user: username }
}

/** Clients that the console counts, without itself. */
async function countClients(port) {
  const client = new pg.Client(`postgres://admin:console@127.0.0.1:${port}/pgshard`)
  await client.connect()
  const { rows } = await client.query('show clients')
  await client.end()
  return rows.filter(({ database }) => database === 'app').length
}

async function measure(clients, children, serve) {
  const share = (i) =>
    Math.floor((clients * (i + 1)) / children.length) - Math.floor((clients * i) / children.length)
  const all = (message) => Promise.all(children.map((child, i) => ask(child, message(i))))
  const sum = (answers, name) => answers.reduce((total, answer) => total + answer[name], 0)
  await all(() => ({
    kind: 'connect',
    port: serve.port,
    user: serve.user,
    from: 0,
    count: Math.ceil(WARM_UP / children.length),
  }))
  await all(() => ({ kind: 'end' }))
  const before = await settledKb(serve.child.pid)
  const begun = performance.now()
  const logins = await all((i) => ({
    kind: 'connect',
    port: serve.port,
    user: serve.user,
    from: i * 100_000,
    count: share(i),
  }))
  const seconds = (performance.now() - begun) / 1000
  const idle = await settledKb(serve.child.pid)
  const counted = await countClients(serve.port)
  const queries = await all(() => ({ kind: 'query' }))
  const used = await settledKb(serve.child.pid)
  await all(() => ({ kind: 'end' }))
  return {
    clients,
    connected: sum(logins, 'connected'),
    refused: sum(logins, 'failed'),
    counted,
    failedQueries: sum(queries, 'failed'),
    loginSeconds: Number(seconds.toFixed(1)),
    beforeKb: before,
    idleKbEach: Number(((idle - before) / clients).toFixed(2)),
    afterQueryKbEach: Number(((used - before) / clients).toFixed(2)),
  }
}

async function main() {
  const { values } = parseArgs({
    options: {
      clients: { type: 'string', default: '10000' },
      processes: { type: 'string', default: '4' },
      server: { type: 'string' },
      'node-flags': { type: 'string', default: '' },
    },
  })
  const clients = Number(values.clients)
  const folder = mkdtempSync(join(tmpdir(), 'pgshard-idle-'))
  const { startCluster, destroyCluster } = await import(join(root, 'dist/src/cluster/cluster.js'))
  let cluster
  if (values.server === undefined) {
    cluster = await startCluster({ directory: join(folder, 'cluster'), shards: 1, replicas: 0 })
  }
  const children = []
  let serve
  try {
    serve = await startServe(
      values.server ?? cluster.servers[0].url,
      folder,
      values['node-flags'].split(' ').filter((flag) => flag !== ''),
    )
    for (let i = 0; i < Number(values.processes); i++)
      children.push(fork(fileURLToPath(import.meta.url), ['--hold']))
    const result = await measure(clients, children, serve)
    console.log(JSON.stringify(result, null, 2))
    const { idleKbEach, connected, counted } = result
    console.log(
      `${connected} of ${clients} idle clients, ${idleKbEach} kB each (target ${TARGET_KB}, goal ${GOAL_KB}); SHOW CLIENTS counts ${counted}`,
    )
    keepFigure({
      what: `${clients} idle clients, plain TCP`,
      ours: `${idleKbEach} kB each, ${clients - connected} refused`,
      target: `≤ ${TARGET_KB} kB each, none refused`,
      holds: idleKbEach <= TARGET_KB && connected === clients,
    })
    const isMet = idleKbEach <= TARGET_KB && connected === clients && counted === clients
    if (!isMet || result.failedQueries > 0) process.exitCode = 1
  } finally {
    for (const child of children) child.kill()
    serve?.child.kill('SIGKILL')
    if (cluster) await destroyCluster(cluster.directory)
    rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv.includes('--hold')) holdClients()
else await main()

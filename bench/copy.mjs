/**
 * COPY against the targets of the design (§12): copy-shard into four shards against one `psql \copy` of the whole and against four
 * psql on files split beforehand, per format; COPY through serve against copy-shard; rejects; memory while a shard stalls.
 *   node bench/copy.mjs [--rows 4000000] [--rounds 5] [--bin-dir /usr/lib/postgresql/15/bin] [--only load,proxy,rejects,stall,cpu,splitter]
 *     [--formats csv,text,binary] [--results FILE]
 * `cpu` prints the CPU of client and servers apart, `splitter` that of the row router alone, in memory.
 * It needs a build and psql; it starts four servers of its own in a temporary folder (node bin/run.js cluster start).
 * 4 M rows (400 MB) are what the targets were set by: a run takes some seconds, so that the start of Node is not what is measured.
 * Rounds are interleaved and medians taken; before each run the tables are emptied and the servers write a checkpoint. CPU is that of the client program alone (of serve for the proxy), a row.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { makeKeyPlacer } from '../dist/src/sharding/key-placer.js'
import { benchCpu } from './copy/cpu.mjs'
import { head, makers, writeLoad } from './copy/files.mjs'
import { benchSplitter } from './copy/splitter.mjs'
import { keepRatio } from './results.mjs'

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '4000000' },
    rounds: { type: 'string', default: '5' },
    'bin-dir': { type: 'string', default: '/usr/lib/postgresql/15/bin' },
    only: { type: 'string', default: 'load,proxy,rejects,stall' },
    formats: { type: 'string', default: 'csv,text,binary' },
  },
})
const ROWS = Number(flags.rows)
const ROUNDS = Number(flags.rounds)
const FORMATS = flags.formats.split(',')
const SHARDS = 4
const program = fileURLToPath(new URL('../bin/run.js', import.meta.url))
const psql = join(flags['bin-dir'], 'psql')
const directory = mkdtempSync(join(tmpdir(), 'pgshard-bench-copy-'))
const path = (name) => join(directory, name)
const TICKS_PER_S = 100
const targets = {
  csv: { whole: 1.4, split: 0.8 },
  text: { whole: 1.8, split: 0.8 },
  binary: { whole: 1.2, split: 0.8 },
}

const placer = makeKeyPlacer({
  column: 'aid',
  keyType: 'bigint',
  placement: { kind: 'hash', hasher: 'postgres', buckets: SHARDS, bucketMap: [0, 1, 2, 3] },
})

const writeFiles = (format) => writeLoad({ format, rows: ROWS, shards: SHARDS, placer, path })

const cli = (...args) => {
  const done = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
  if (done.status !== 0) throw new Error(`${args[0]} failed: ${done.stderr}`)
  return done.stdout
}

/** Wall and CPU seconds of programs that run side by side. */
async function time(...commands) {
  const started = performance.now()
  const runs = commands.map(
    ([name, args, env]) =>
      new Promise((resolve, reject) => {
        const child = spawn(
          '/bin/sh',
          ['-c', '"$0" "$@"; code=$?; times; exit $code', name, ...args],
          {
            env: { ...process.env, ...env },
          },
        )
        let text = ''
        let errors = ''
        child.stdout.on('data', (chunk) => {
          text += chunk
        })
        child.stderr.on('data', (chunk) => {
          errors += chunk
        })
        child.on('close', (code) => resolve({ code, text, errors }))
        child.on('error', reject)
      }),
  )
  const ends = await Promise.all(runs)
  const cpuS = ends.reduce((sum, { text }) => {
    const last = text
      .trim()
      .split('\n')
      .at(-1)
      .match(/[\d.]+/g)
      .map(Number)
    return sum + last[0] * 60 + last[1] + last[2] * 60 + last[3]
  }, 0)
  return { wallS: (performance.now() - started) / 1000, cpuS, ends }
}

const expectDone = (run, codes = [0]) => {
  for (const { code, errors } of run.ends)
    if (!codes.includes(code)) throw new Error(`exit code ${code}: ${errors}`)
  return run
}

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1]
const show = (label, runs, megabytes) => {
  const wallS = median(runs.map((run) => run.wallS))
  const cpuS = median(runs.map((run) => run.cpuS))
  const rate = `${(megabytes / wallS).toFixed(0)} MB/s`
  console.log(
    `  ${label.padEnd(26)} ${wallS.toFixed(2).padStart(7)} s ${rate.padStart(9)} ${((cpuS * 1e6) / ROWS).toFixed(2)} µs of CPU a row`,
  )
  return { wallS, cpuS }
}
/** What verdicts are about, and the figures they compare. */
let part = ''
let sides = {}
const about = (text, ours, peer) => {
  part = text
  sides = peer === undefined ? { ours } : { ours, peer }
}
const seconds = ({ wallS }) => `${wallS.toFixed(2)} s`
const verdict = (what, ratio, target, isLow = false) => {
  const holds = isLow ? ratio <= target : ratio >= target
  console.log(
    `  ${holds ? 'ok  ' : 'MISS'} ${what}: ${ratio.toFixed(2)} (target ${isLow ? '≤' : '≥'} ${target})`,
  )
  keepRatio({ what: `${part}: ${what}`, ...sides, ratio, target, isLow })
}

const basePort = 22_400 + (process.pid % 190)
cli(
  ...['cluster', 'start', '--shards', String(SHARDS), '--dir', path('cluster')],
  ...['--base-port', String(basePort), '--bin-dir', flags['bin-dir']],
)
const env = readFileSync(path('cluster/pgshard.env'), 'utf8')
const urls = [...env.matchAll(/postgres(?:ql)?:\/\/[^\s"']+/g)].map(([url]) => url)
const shardUrls = [...new Set(urls)].slice(0, SHARDS)
const table =
  'create table accounts (aid bigint, bid int, abalance int, filler char(84)); create table whole (like accounts)'

async function onShard(shard, sql) {
  const client = new pg.Client({ connectionString: shardUrls[shard] })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
const everywhere = (sql) => Promise.all(shardUrls.map((_, shard) => onShard(shard, sql)))
const empty = async () => {
  await everywhere('truncate accounts, whole')
  await everywhere('checkpoint')
}
const check = async (wanted = ROWS) => {
  const counts = await everywhere('select count(*)::int as n from accounts')
  const found = counts.reduce((sum, [{ n }]) => sum + n, 0)
  if (found !== wanted) throw new Error(`${found} rows instead of ${wanted}`)
}

const copyShard = (file, ...more) => [
  process.execPath,
  [
    ...[program, 'copy-shard', file, '--table', 'accounts', '--sharding-key', 'aid', '--quiet'],
    ...shardUrls.flatMap((url) => ['--target', url]),
    ...more,
  ],
]
const byPsql = (url, into, file, format) => [
  psql,
  [
    '-X',
    '-q',
    '-v',
    'ON_ERROR_STOP=1',
    url,
    '-c',
    `\\copy ${into} from '${file}' (format ${format})`,
  ],
]

async function benchLoad(format) {
  const file = path(`whole.${format}`)
  const megabytes = statSync(file).size / 1e6
  const runs = { ours: [], whole: [], split: [] }
  for (let round = 0; round < ROUNDS; round++) {
    await empty()
    runs.ours.push(expectDone(await time(copyShard(file, '--format', format))))
    await check()
    await empty()
    runs.whole.push(expectDone(await time(byPsql(shardUrls[0], 'whole', file, format))))
    await empty()
    const parts = shardUrls.map((url, shard) =>
      byPsql(url, 'accounts', path(`part-${shard}.${format}`), format),
    )
    runs.split.push(expectDone(await time(...parts)))
    await check()
  }
  console.log(`${format}, ${ROWS} rows, ${megabytes.toFixed(0)} MB`)
  const ours = show('copy-shard to 4 shards', runs.ours, megabytes)
  const whole = show('one psql \\copy', runs.whole, megabytes)
  const split = show('four psql, split files', runs.split, megabytes)
  about(`copy-shard to 4 shards, ${format}`, seconds(ours), seconds(whole))
  verdict('against one psql', whole.wallS / ours.wallS, targets[format].whole)
  about(`copy-shard to 4 shards, ${format}`, seconds(ours), seconds(split))
  verdict('against four psql', split.wallS / ours.wallS, targets[format].split)
  console.log(`       four psql against one: ${(whole.wallS / split.wallS).toFixed(2)}`)
}

async function benchLoadCpu(format) {
  const parts = shardUrls.map((url, shard) =>
    byPsql(url, 'accounts', path(`part-${shard}.${format}`), format),
  )
  const file = path(`whole.${format}`)
  const found = await everywhere('show data_directory')
  await benchCpu({
    format,
    rows: ROWS,
    rounds: ROUNDS,
    directories: found.map(([row]) => row.data_directory),
    before: empty,
    runs: {
      'copy-shard to 4 shards': async () =>
        expectDone(await time(copyShard(file, '--format', format))),
      'four psql, split files': async () => expectDone(await time(...parts)),
      'one psql \\copy': async () =>
        expectDone(await time(byPsql(shardUrls[0], 'whole', file, format))),
    },
  })
}

function splitOnly(format) {
  const request = { format, rows: ROWS, placer, shards: SHARDS, makeRow: makers[format] }
  benchSplitter(format === 'binary' ? { ...request, head } : request)
}

/** User and system seconds of a process. */
const cpuOf = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S
}

async function startServe() {
  const lines = shardUrls.map((url, shard) => {
    const { hostname, port, pathname } = new URL(url)
    return `[[databases]]\nname = "app"\nhost = "${hostname}"\nport = ${port}\ndatabase_name = "${pathname.slice(1)}"\nshard = ${shard}\n`
  })
  const { username } = new URL(shardUrls[0])
  writeFileSync(
    path('serve.toml'),
    `[general]\nhost = "127.0.0.1"\nport = 0\nauth_type = "trust"\n${lines.join('')}[[sharded_tables]]\ndatabase = "app"\nname = "accounts"\ncolumn = "aid"\n`,
  )
  writeFileSync(
    path('users.toml'),
    `[[users]]\nname = "${username}"\ndatabase = "app"\npassword = "x"\n`,
  )
  const files = ['--config', path('serve.toml'), '--users', path('users.toml')]
  cli('setup', ...files)
  const child = spawn(process.execPath, [program, 'serve', ...files])
  const port = await new Promise((resolve, reject) => {
    child.stderr.on('data', (chunk) => {
      const found = /listening on \S+:(\d+)/.exec(String(chunk))
      if (found) resolve(found[1])
    })
    child.on('exit', (code) => reject(new Error(`serve ended: ${code}`)))
  })
  return { child, url: `postgres://${username}@127.0.0.1:${port}/app` }
}

async function benchProxy(served) {
  for (const format of FORMATS) {
    const file = path(`whole.${format}`)
    const megabytes = statSync(file).size / 1e6
    const runs = { proxy: [], ours: [] }
    for (let round = 0; round < ROUNDS; round++) {
      await empty()
      const before = cpuOf(served.child.pid)
      const run = expectDone(await time(byPsql(served.url, 'accounts', file, format)))
      runs.proxy.push({ ...run, cpuS: cpuOf(served.child.pid) - before })
      await check()
      await empty()
      runs.ours.push(expectDone(await time(copyShard(file, '--format', format))))
    }
    console.log(`COPY through serve, ${format}`)
    const proxy = show('serve (its CPU)', runs.proxy, megabytes)
    const ours = show('copy-shard', runs.ours, megabytes)
    about(`COPY through serve, ${format}`, seconds(proxy), seconds(ours))
    verdict('against copy-shard', ours.wallS / proxy.wallS, 0.8)
  }
}

/** One row in a thousand cannot be read by a server. */
async function benchRejects() {
  const whole = readFileSync(path('whole.csv'), 'latin1').split('\n')
  const bad = whole.map((row, index) => (index % 1000 === 499 ? row.replace(',0,', ',x,') : row))
  writeFileSync(path('bad.csv'), bad.join('\n'))
  const isBad = bad.filter((row, index) => row !== whole[index]).length
  const runs = { clean: [], rejecting: [] }
  for (let round = 0; round < ROUNDS; round++) {
    await empty()
    const flags = ['--on-error', 'reject', '--reject-file', path('rejects.csv')]
    runs.clean.push(expectDone(await time(copyShard(path('whole.csv'), ...flags))))
    await empty()
    runs.rejecting.push(expectDone(await time(copyShard(path('bad.csv'), ...flags)), [6]))
    await check(ROWS - isBad)
  }
  const megabytes = statSync(path('whole.csv')).size / 1e6
  console.log(`--on-error reject, ${isBad} of ${ROWS} rows at fault`)
  const clean = show('without faults', runs.clean, megabytes)
  const rejecting = show('with faults', runs.rejecting, megabytes)
  about('one row in a thousand at fault, rejected', seconds(rejecting), seconds(clean))
  verdict('time, of the clean one', rejecting.wallS / clean.wallS, 4, true)
  verdict('CPU, of the clean one', rejecting.cpuS / clean.cpuS, 4, true)
}

const rssOf = (pid) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

/** The backend of one shard is stopped while data is there; what the program holds must not grow. */
async function benchStall(label, start) {
  await empty()
  const { pid, ended } = await start()
  const backendOf = async () =>
    (await onShard(2, 'select pid from pg_stat_progress_copy where tuples_processed > 1000'))[0]
      ?.pid
  let backend = await backendOf()
  while (backend === undefined) {
    await new Promise((done) => setTimeout(done, 5))
    backend = await backendOf()
  }
  process.kill(backend, 'SIGSTOP')
  const seen = []
  try {
    for (let second = 0; second < 5; second++) {
      await new Promise((done) => setTimeout(done, 1000))
      seen.push(rssOf(pid))
    }
  } finally {
    process.kill(backend, 'SIGCONT')
  }
  await ended
  await check()
  console.log(
    `  ${label}: ${seen.map((one) => one.toFixed(0)).join(' ')} MB, second by second while a shard stands still`,
  )
  about(`memory of ${label} while a shard stands still`, `${(seen.at(-1) - seen[0]).toFixed(0)} MB`)
  verdict('growth in MB', seen.at(-1) - seen[0], 20, true)
}

const ends = (child, isServe) =>
  new Promise((resolve, reject) =>
    child.on('close', (code) =>
      code === 0 || isServe ? resolve() : reject(new Error(`exit code ${code}`)),
    ),
  )

let served
try {
  await everywhere(table)
  const parts = new Set(flags.only.split(','))
  if (parts.has('splitter')) for (const format of FORMATS) splitOnly(format)
  if (parts.size > 1 || !parts.has('splitter'))
    for (const format of FORMATS) await writeFiles(format)
  if (parts.has('load')) for (const format of FORMATS) await benchLoad(format)
  if (parts.has('cpu')) for (const format of FORMATS) await benchLoadCpu(format)
  if (parts.has('rejects')) await benchRejects()
  if (parts.has('proxy') || parts.has('stall')) served = await startServe()
  if (parts.has('proxy')) await benchProxy(served)
  if (parts.has('stall')) {
    console.log('memory')
    await benchStall('copy-shard', () => {
      const [name, args] = copyShard(path('whole.csv'))
      const child = spawn(name, args, { stdio: 'ignore' })
      return { pid: child.pid, ended: ends(child) }
    })
    await benchStall('serve', () => {
      const [name, args] = byPsql(served.url, 'accounts', path('whole.csv'), 'csv')
      return { pid: served.child.pid, ended: ends(spawn(name, args, { stdio: 'ignore' })) }
    })
  }
} finally {
  served?.child.removeAllListeners('exit')
  served?.child.kill('SIGTERM')
  cli('cluster', 'destroy', '--dir', path('cluster'))
  rmSync(directory, { recursive: true, force: true })
}

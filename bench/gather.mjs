/**
 * A join of two tables of 100,000 rows each on a column that is not the sharding key: through pgshard, which gathers the rows
 * of all shards on one server, against the same join on one PostgreSQL. Interleaved rounds, medians of the wall time.
 *   node bench/gather.mjs PLAIN_URL PROXY_URL ADMIN_URL SHARD_URL… [--rounds 9] [--rows 100000] [--keep] [--results FILE]
 * The proxy's configuration shards tables gather_a and gather_b by column k over the SHARD_URLs, in their order; the tables
 * are made (and dropped, unless --keep) on all of them. Target: at most 4 times.
 */
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { keepRatio } from './results.mjs'

const options = { rounds: 9, rows: 100_000, keep: false }
const urls = []
const argv = process.argv.slice(2)
while (argv.length > 0) {
  const word = argv.shift()
  if (word === '--keep') options.keep = true
  else if (word === '--rounds' || word === '--rows') options[word.slice(2)] = Number(argv.shift())
  else urls.push(word)
}
const [plainUrl, proxyUrl, adminUrl, ...shardUrls] = urls
if (shardUrls.length === 0) {
  console.error(
    'usage: node bench/gather.mjs PLAIN_URL PROXY_URL ADMIN_URL SHARD_URL… [--rounds N] [--rows N]',
  )
  process.exit(2)
}

async function open(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

const columns = '(k bigint primary key, ref int, v int, amount numeric(10,2), note text)'
const drop = 'drop table if exists gather_a, gather_b'
const plain = await open(plainUrl)
const proxy = await open(proxyUrl)

async function everywhere(sql) {
  await plain.query(sql)
  for (const url of shardUrls) {
    const shard = await open(url)
    await shard.query(sql)
    await shard.end()
  }
}

async function prepare() {
  await everywhere(`${drop}; create table gather_a ${columns}; create table gather_b ${columns}`)
  const rows = (factor) =>
    `select i, (i::bigint * ${factor}) % ${options.rows}, i % 1000, i / 7.0, 'note of row ' || i from generate_series(1, ${options.rows}) i`
  await plain.query(`insert into gather_a ${rows(7919)}; insert into gather_b ${rows(104_729)}`)
  const admin = await open(adminUrl)
  await admin.query('RELOAD')
  await admin.end()
  for (let tries = 0; ; tries++) {
    try {
      await proxy.query('select count(*) from gather_b where k = 0')
      break
    } catch (error) {
      if (tries > 50) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  for (const table of ['gather_a', 'gather_b']) {
    await pipeline(
      plain.query(copyTo(`copy ${table} to stdout`)),
      proxy.query(copyFrom(`copy ${table} from stdin`)),
    )
  }
  await everywhere('vacuum analyze gather_a').catch(() => undefined)
  await everywhere('vacuum analyze gather_b').catch(() => undefined)
}

const statements = {
  'join, one row':
    'select count(*) as n, sum(a.v + b.v) as s from gather_a a join gather_b b on a.ref = b.ref',
  'join, all rows':
    'select a.k, b.k as other, a.v + b.v as s from gather_a a join gather_b b on a.ref = b.ref',
  'join, filtered':
    'select count(*) as n, sum(a.amount) as s from gather_a a join gather_b b on a.ref = b.ref where a.v < 10',
}

async function timed(client, sql) {
  const from = performance.now()
  const { rows } = await client.query({ text: sql, rowMode: 'array' })
  return { ms: performance.now() - from, rows }
}

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1]
const sorted = (rows) =>
  rows
    .map((row) => row.join())
    .sort()
    .join()

await prepare()
for (const [name, sql] of Object.entries(statements)) {
  const [first, second] = [await timed(plain, sql), await timed(proxy, sql)]
  if (sorted(first.rows) !== sorted(second.rows)) throw new Error(`${name}: the answers differ`)
  const times = { plain: [], proxy: [] }
  for (let round = 0; round < options.rounds; round++) {
    times.plain.push((await timed(plain, sql)).ms)
    times.proxy.push((await timed(proxy, sql)).ms)
  }
  const [direct, ours] = [median(times.plain), median(times.proxy)]
  console.log(
    `${name}: one PostgreSQL ${direct.toFixed(1)} ms, gathered ${ours.toFixed(1)} ms: ${(ours / direct).toFixed(2)} times`,
  )
  keepRatio({
    what: name,
    ours: `${ours.toFixed(0)} ms`,
    peer: `${direct.toFixed(0)} ms`,
    ratio: ours / direct,
    target: 4,
    isLow: true,
  })
}
if (!options.keep) await everywhere(drop)
await plain.end()
await proxy.end()

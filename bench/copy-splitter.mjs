/**
 * How fast rows are split and routed, without PostgreSQL: node bench/copy-splitter.mjs [megabytes] [--results FILE] (needs a build).
 * Rates are by the CPU time of the process, medians of five interleaved rounds: others on the machine do not count.
 * Targets (design §12): 450, 600 and 800 MB/s for csv, text and binary.
 * Rows are shaped like pgbench_accounts (101 bytes), four shards, key bigint in the first column; 128 KB chunks.
 */
import { makeCopyOptions } from '../dist/src/copy/copy-options.js'
import { makeRowRouter } from '../dist/src/copy/row-router.js'
import { makeKeyPlacer } from '../dist/src/sharding/key-placer.js'
import { keepFigure } from './results.mjs'

const CHUNK_BYTES = 128 * 1024
const totalBytes = Number(process.argv[2] ?? 256) * 1e6
const filler = ''.padEnd(84)

const placer = makeKeyPlacer({
  column: 'aid',
  keyType: 'bigint',
  placement: { kind: 'hash', hasher: 'postgres', buckets: 4, bucketMap: [0, 1, 2, 3] },
})
const layout = {
  table: 'pgbench_accounts',
  columns: ['aid', 'bid', 'abalance', 'filler'],
  keyIndex: 0,
}

function binaryRow(aid) {
  const row = Buffer.alloc(2 + 12 + 8 + 8 + 4 + 84)
  row.writeInt16BE(4, 0)
  row.writeInt32BE(8, 2)
  row.writeBigInt64BE(BigInt(aid), 6)
  row.writeInt32BE(4, 14)
  row.writeInt32BE(4, 22)
  row.writeInt32BE(84, 30)
  row.fill(32, 34)
  return row
}

const signature = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex')
const makers = {
  csv: (aid) => Buffer.from(`${aid},${aid % 40},0,${filler}\n`),
  'csv, all quoted': (aid) => Buffer.from(`"${aid}","${aid % 40}","0","${filler}"\n`),
  text: (aid) => Buffer.from(`${aid}\t${aid % 40}\t0\t${filler}\n`),
  'text, with \\N': (aid) => Buffer.from(`${aid}\t\\N\t0\t${filler}\n`),
  binary: binaryRow,
}

const ROUNDS = 5
const results = new Map(Object.keys(makers).map((name) => [name, []]))
const blocks = new Map(
  Object.entries(makers).map(([name, make]) => [
    name,
    Buffer.concat(Array.from({ length: 50_000 }, (_, row) => make(1_000_000 + row * 7))),
  ]),
)

function measure(name) {
  const format = name.split(',')[0]
  const block = blocks.get(name)
  const repeats = Math.max(1, Math.round(totalBytes / ROUNDS / block.length))
  const router = makeRowRouter({
    options: makeCopyOptions({ format }),
    layout,
    shardCount: 4,
    placer,
    lendsBatches: true,
    onBatch: (_, bytes) => router.giveBack(bytes),
  })
  if (format === 'binary') router.push(signature)
  const before = process.cpuUsage()
  for (let round = 0; round < repeats; round++)
    for (let at = 0; at < block.length; at += CHUNK_BYTES)
      router.push(block.subarray(at, at + CHUNK_BYTES))
  router.finish()
  const { user, system } = process.cpuUsage(before)
  return { rate: (repeats * block.length) / (user + system), rows: router.rows / (user + system) }
}

for (let round = 0; round < ROUNDS; round++)
  for (const [name, runs] of results) runs.push(measure(name))
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1]
for (const [name, runs] of results) {
  const rate = `${Math.round(median(runs.map((run) => run.rate)))} MB/s`
  const rows = median(runs.map((run) => run.rows)).toFixed(2)
  console.log(`${name.padEnd(16)} ${rate.padStart(10)} ${rows} M rows/s`)
  const target = { csv: 450, text: 600, binary: 800 }[name]
  keepFigure({
    what: name,
    ours: `${rate}, ${rows} M rows/s`,
    ...(target ? { target: `≥ ${target} MB/s`, holds: Number.parseInt(rate, 10) >= target } : {}),
  })
}

/**
 * How fast rows are split and routed, without PostgreSQL: node bench/copy-splitter.mjs [megabytes] (needs a build).
 * Rows are shaped like pgbench_accounts (101 bytes), four shards, key bigint in the first column; 128 KB chunks.
 */
import { makeCopyOptions } from '../dist/src/copy/copy-options.js'
import { makeRowRouter } from '../dist/src/copy/row-router.js'
import { makeKeyPlacer } from '../dist/src/sharding/key-placer.js'

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

for (const [name, make] of Object.entries(makers)) {
  const format = name.split(',')[0]
  const block = Buffer.concat(Array.from({ length: 50_000 }, (_, row) => make(1_000_000 + row * 7)))
  const repeats = Math.max(1, Math.round(totalBytes / block.length))
  let batches = 0
  const router = makeRowRouter({
    options: makeCopyOptions({ format }),
    layout,
    shardCount: 4,
    placer,
    onBatch: () => batches++,
  })
  if (format === 'binary') router.push(signature)
  const started = performance.now()
  for (let round = 0; round < repeats; round++)
    for (let at = 0; at < block.length; at += CHUNK_BYTES)
      router.push(block.subarray(at, at + CHUNK_BYTES))
  router.finish()
  const seconds = (performance.now() - started) / 1000
  const megabytes = (repeats * block.length) / 1e6
  const rate = `${Math.round(megabytes / seconds)} MB/s`
  console.log(
    `${name.padEnd(16)} ${rate.padStart(10)} ${(router.rows / seconds / 1e6).toFixed(2)} M rows/s ${batches} batches`,
  )
}

/** Splitting, placing and copying rows alone, in memory: the best of three of seconds of CPU, as copy-shard feeds its router. */
import { makeCopyOptions } from '../../dist/src/copy/copy-options.js'
import { makeRowRouter } from '../../dist/src/copy/row-router.js'

const CHUNK_BYTES = 256 * 1024
const BLOCK_ROWS = 50_000

/** `block`: that many rows; `head`: what stands before the first. */
export function benchSplitter({ format, rows, placer, shards, head, makeRow }) {
  const block = Buffer.concat(
    Array.from({ length: BLOCK_ROWS }, (_, row) => makeRow(1_000_000 + row * 7)),
  )
  const times = Array.from({ length: 3 }, () => {
    const router = makeRowRouter({
      options: makeCopyOptions({ format }),
      layout: { table: 'accounts', columns: ['aid', 'bid', 'abalance', 'filler'], keyIndex: 0 },
      shardCount: shards,
      placer,
      lendsBatches: true,
      isBare: true,
      plainAfter: 1,
      onBatch: (_, bytes) => router.giveBack(bytes),
    })
    const before = process.cpuUsage()
    if (head !== undefined) router.push(head)
    for (let done = 0; done < rows; done += BLOCK_ROWS)
      for (let at = 0; at < block.length; at += CHUNK_BYTES)
        router.push(block.subarray(at, at + CHUNK_BYTES))
    router.finish()
    const { user, system } = process.cpuUsage(before)
    return { seconds: (user + system) / 1e6, rows: router.rows }
  })
  const best = times.reduce((a, b) => (a.seconds < b.seconds ? a : b))
  const rate = (best.rows * block.length) / BLOCK_ROWS / best.seconds / 1e6
  console.log(
    `  ${format.padEnd(8)} ${best.rows} rows ${best.seconds.toFixed(2)} s of CPU, ${rate.toFixed(0)} MB/s`,
  )
}

/** The files that bench/copy.mjs loads. */
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'

const filler = ''.padEnd(84)
/** A row of each format: those of pgbench_accounts, 101 bytes as text. */
export const makers = {
  csv: (aid) => Buffer.from(`${aid},${aid % 40},0,${filler}\n`),
  text: (aid) => Buffer.from(`${aid}\t${aid % 40}\t0\t${filler}\n`),
  binary: (aid) => {
    const row = Buffer.alloc(2 + 12 + 8 + 8 + 4 + 84, 32)
    row.writeInt16BE(4, 0)
    row.writeInt32BE(8, 2)
    row.writeBigInt64BE(BigInt(aid), 6)
    row.writeInt32BE(4, 14)
    row.writeInt32BE(aid % 40, 18)
    row.writeInt32BE(4, 22)
    row.writeInt32BE(0, 26)
    row.writeInt32BE(84, 30)
    return row
  },
}
export const head = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex')
const tail = Buffer.from('ffff', 'hex')

/** The whole, and a part for each shard. */
export async function writeLoad({ format, rows, shards, placer, path }) {
  const names = [path(`whole.${format}`)]
  for (let shard = 0; shard < shards; shard++) names.push(path(`part-${shard}.${format}`))
  const files = names.map((name) => createWriteStream(name))
  const isBinary = format === 'binary'
  if (isBinary) for (const file of files) file.write(head)
  for (let from = 0; from < rows; from += 10_000) {
    const pieces = files.map(() => [])
    for (let row = from; row < Math.min(rows, from + 10_000); row++) {
      const aid = 1_000_000 + row * 7
      const bytes = makers[format](aid)
      pieces[0].push(bytes)
      pieces[1 + placer.ofString(String(aid))].push(bytes)
    }
    const waits = files.map((file, index) =>
      file.write(Buffer.concat(pieces[index]))
        ? undefined
        : new Promise((done) => file.once('drain', done)),
    )
    await Promise.all(waits)
  }
  for (const file of files) file.end(isBinary ? tail : undefined)
  await Promise.all(files.map((file) => finished(file)))
}

import { describe, expect, it } from 'vitest'
import { BATCH_BYTES } from '../../../src/copy/batch-arena.js'
import { makeCopyOptions } from '../../../src/copy/copy-options.js'
import { makeRowRouter } from '../../../src/copy/row-router.js'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'
import { makeRandom } from '../../support/random.js'

const placer = makeKeyPlacer({
  column: 'id',
  keyType: 'bigint',
  placement: {
    kind: 'list',
    entries: [
      { values: ['1'], shard: 0 },
      { values: ['2'], shard: 1 },
    ],
  },
})
const layout = { table: 't', columns: ['id', 'a'], keyIndex: 0 }

function route(
  input: Buffer,
  extra: { isReference?: boolean; options?: Record<string, string> } = {},
) {
  const shards = [Buffer.alloc(0), Buffer.alloc(0)]
  const rows = [0, 0]
  const router = makeRowRouter({
    options: makeCopyOptions(extra.options ?? { format: 'csv', header: 'true' }),
    layout,
    shardCount: 2,
    ...(extra.isReference ? {} : { placer }),
    onBatch: (shard, bytes, count) => {
      shards[shard] = Buffer.concat([shards[shard]!, bytes])
      rows[shard]! += count
    },
  })
  router.push(input)
  router.finish()
  return { text: shards.map(String), rows, router }
}

describe('row router', () => {
  it('gives every shard the header and its own rows', () => {
    const { text, rows, router } = route(Buffer.from('id,a\n1,x\n2,y\n1,"z\n"\n'))
    expect(text).toEqual(['id,a\n1,x\n1,"z\n"\n', 'id,a\n2,y\n'])
    expect(rows).toEqual([2, 1])
    expect(router.rows).toBe(3)
    expect(router.rowsPerShard).toEqual([2, 1])
    expect(router.bytesPerShard).toEqual(text.map((one) => one.length))
  })

  it('gives every shard all rows of a reference table, counted once', () => {
    const { text, router } = route(Buffer.from('id,a\n1,x\n9,y\n'), { isReference: true })
    expect(text).toEqual(['id,a\n1,x\n9,y\n', 'id,a\n1,x\n9,y\n'])
    expect(router.rows).toBe(2)
    expect(router.rowsPerShard).toEqual([2, 2])
  })

  it('passes rows longer than a buffer, and much data, unchanged', () => {
    const long = 'x'.repeat(3 * BATCH_BYTES + 5)
    const many = Array.from({ length: 40_000 }, (_, n) => `${1 + (n % 2)},${n}\n`).join('')
    const { text, rows } = route(Buffer.from(`id,a\n1,${long}\n${many}2,${long}\n`))
    const ones = many.match(/^1,.*\n/gm)!.join('')
    const twos = many.match(/^2,.*\n/gm)!.join('')
    expect(text[0] === `id,a\n1,${long}\n${ones}`).toBe(true)
    expect(text[1] === `id,a\n${twos}2,${long}\n`).toBe(true)
    expect(rows).toEqual([20_001, 20_001])
  })

  it('lends batches that stay as they are until they are given back, in any order', () => {
    const rows = Array.from(
      { length: 60_000 },
      (_, n) => `${1 + ((n >> 4) % 2)},row ${n}${'.'.repeat(n % 40)}\n`,
    )
    const shards = ['', '']
    const held: { shard: number; bytes: Buffer }[] = []
    const random = makeRandom(3)
    const router = makeRowRouter({
      options: makeCopyOptions({ format: 'csv' }),
      layout,
      shardCount: 2,
      placer,
      lendsBatches: true,
      onBatch: (shard, bytes) => held.push({ shard, bytes }),
    })
    /** Reads a batch only now, so that memory used too early shows. Those of one shard keep their order. */
    const useOne = (shard: number) => {
      const index = held.findIndex((one) => one.shard === shard)
      if (index < 0) return
      const { bytes } = held.splice(index, 1)[0]!
      shards[shard] += bytes.toString()
      router.giveBack(bytes)
    }
    const input = Buffer.from(rows.join(''))
    for (let at = 0; at < input.length; at += 50_000) {
      router.push(input.subarray(at, at + 50_000))
      if (random() < 0.6) useOne(random() < 0.5 ? 0 : 1)
    }
    router.finish()
    expect(held.length).toBeGreaterThan(4)
    while (held.length > 0) useOne((held.at(-1) as { shard: number }).shard)
    for (const shard of [0, 1])
      expect(shards[shard] === rows.filter((row) => row.startsWith(`${shard + 1},`)).join('')).toBe(
        true,
      )
  })

  it('names the line of a key that cannot be placed', () => {
    expect(() => route(Buffer.from('id,a\n1,x\n3,y\n'))).toThrowError(
      expect.objectContaining({ sqlstate: '23514', where: 'COPY t, line 3' }),
    )
    expect(() => route(Buffer.from('id,a\n1,x\nzz,y\n'))).toThrowError(
      expect.objectContaining({ sqlstate: '22P02', where: 'COPY t, line 3, column id: "zz"' }),
    )
    expect(() => route(Buffer.from('id,a\nzz,y,extra\n'))).toThrowError(
      expect.objectContaining({
        sqlstate: '22P04',
        message: 'extra data after last expected column',
      }),
    )
    expect(() => route(Buffer.from('id,a\n,x\n'))).toThrowError(
      expect.objectContaining({ sqlstate: '23514' }),
    )
  })

  it('hands out the rows up to a fault, so that a server may find an earlier one', () => {
    const given: string[] = []
    const router = makeRowRouter({
      options: makeCopyOptions({ format: 'csv' }),
      layout,
      shardCount: 2,
      placer,
      onBatch: (shard, bytes) => given.push(`${shard} ${bytes}`),
    })
    router.push(Buffer.from('1,x\n2,y\n9,z\n1,never\n'))
    expect(() => router.finish()).toThrowError(expect.objectContaining({ sqlstate: '23514' }))
    expect(given).toEqual(['0 1,x\n9,z\n', '1 2,y\n'])
  })

  it('refuses data without the key', () => {
    expect(() =>
      makeRowRouter({
        options: makeCopyOptions(),
        layout: { table: 't', columns: ['a'] },
        shardCount: 2,
        placer,
        onBatch: () => undefined,
      }),
    ).toThrowError(expect.objectContaining({ code: 'COPY_KEY_ABSENT' }))
  })
})

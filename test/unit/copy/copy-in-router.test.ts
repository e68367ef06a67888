import { describe, expect, it } from 'vitest'
import { CopyInRouter, copyDataHeader } from '../../../src/copy/copy-in-router.js'
import type { CopyEffect } from '../../../src/plan/effects.js'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'

const effect = (options: CopyEffect['options'] = []): CopyEffect => ({
  direction: 'in',
  stdio: true,
  table: { name: 't' },
  options,
  where: false,
})
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
const target = (shards: string[]) => ({
  effect: effect(),
  table: 't',
  columns: ['a', 'id'],
  shardCount: 2,
  serverMajor: 15,
  onBatch: (shard: number, bytes: Buffer) => {
    shards[shard] = (shards[shard] ?? '') + bytes.toString()
  },
})

describe('copy-in router', () => {
  it('finds the key by its name and routes bodies of any size', () => {
    const shards: string[] = []
    const router = new CopyInRouter({ ...target(shards), placer })
    for (const byte of Buffer.from('x\t1\ny\t2\nz\t1\n')) router.push(Buffer.from([byte]))
    router.finish()
    expect(shards).toEqual(['x\t1\nz\t1\n', 'y\t2\n'])
    expect(router.rowsRouted).toBe(3)
    expect(router.tagRows([2, 1])).toBe(3)
  })

  it('counts a reference table once', () => {
    const shards: string[] = []
    const router = new CopyInRouter(target(shards))
    router.push(Buffer.from('x\t7\n'))
    router.finish()
    expect(shards).toEqual(['x\t7\n', 'x\t7\n'])
    expect(router.tagRows([1, 1])).toBe(1)
  })

  it('refuses what cannot be right over several shards', () => {
    const limited = { ...target([]), effect: effect([{ name: 'reject_limit', value: '3' }]) }
    expect(() => new CopyInRouter(limited)).toThrowError(
      expect.objectContaining({ sqlstate: '0A000' }),
    )
    expect(() => new CopyInRouter({ ...target([]), columns: ['a'], placer })).toThrowError(
      expect.objectContaining({ code: 'COPY_KEY_ABSENT' }),
    )
    expect(() => new CopyInRouter({ ...target([]), clientEncoding: 'SJIS', placer })).toThrowError(
      expect.objectContaining({ code: 'COPY_ENCODING_UNSAFE' }),
    )
  })

  it('frames a batch', () => {
    expect(copyDataHeader(Buffer.alloc(10)).toString('hex')).toBe('640000000e')
  })
})

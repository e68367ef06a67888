/** COPY FROM over shards as the protocol has it: in both kinds of it, in transactions, given up, at fault at any row, more than a shard takes. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { frontend } from '../../../src/wire/tags.js'
import { waitFor } from '../../support/wait-for.js'
import { RawClient, SHARDS, useShardedRig } from './sharded-rig.js'

describe('COPY FROM over shards', () => {
  const rig = useShardedRig()
  let client: RawClient

  beforeAll(async () => {
    client = await RawClient.open(rig().served.port)
  })
  afterAll(() => client?.end())
  beforeEach(() => rig().everywhere('truncate item, big, country'))

  const data = (text: string | Buffer) =>
    new FrameWriter(text.length + 16).begin(frontend.copyData).bytes(Buffer.from(text)).end().take()
  const done = new FrameWriter(8).begin(frontend.copyDone).end().take()
  const fail = new FrameWriter(32).begin(frontend.copyFail).cstring('no more').end().take()
  const sync = new FrameWriter(8).begin(frontend.sync).end().take()
  const query = (sql: string) => new FrameWriter().begin(frontend.query).cstring(sql).end().take()

  /** Rows of `item` for every shard in turn. */
  const rows = (count: number) =>
    Array.from(
      { length: count },
      (_, n) => `${rig().key(n % SHARDS, Math.floor(n / SHARDS))}\t1\tv\n`,
    )
  const counts = async (table = 'item') =>
    (await rig().everywhere(`select count(*)::int as n from ${table}`)).map(([row]) => row!['n'])

  /** Starts a COPY and waits for CopyInResponse. */
  async function begin(kind: string, sql = 'copy item from stdin'): Promise<void> {
    client.heard.length = 0
    if (kind === 'simple') client.query(sql).send()
    else client.parse('', sql).bind('').execute().sync().send()
    await client.until((one) => one.startsWith('G'))
  }
  const write = (...frames: Buffer[]) => client.socket.write(Buffer.concat(frames))
  const end = (kind: string) => (kind === 'simple' ? [] : [sync])

  describe.each(['simple', 'extended'])('in the %s protocol', (kind) => {
    it('D139: answers with the sum, and what was sent behind it comes after', async () => {
      await begin(kind)
      write(...rows(9).map(data), done, ...end(kind), query('select 7'))
      const heard = await client.answers(2)
      expect(heard.filter((one) => /^[CEZ]/.test(one))).toEqual([
        ...['C COPY 9', 'Z I', 'C SELECT 1', 'Z I'],
      ])
      expect(await counts()).toEqual([3, 3, 3])
    })

    it('D57: keeps no row when the client gives up', async () => {
      await begin(kind)
      write(...rows(30).map(data), fail, ...end(kind), query('select 7'))
      const heard = await client.answers(2)
      expect(heard.filter((one) => /^[CEZ]/.test(one))).toEqual([
        ...['E 57014 COPY from stdin failed: no more', 'Z I', 'C SELECT 1', 'Z I'],
      ])
      expect(await counts()).toEqual([0, 0, 0])
    })

    it.each([0, 1, 17, 29])('D140: keeps no row when row %i is at fault', async (at) => {
      await begin(kind)
      const all = rows(30)
      all[at] = all[at]!.replace('\t1\t', '\tx\t')
      write(...all.map(data), done, ...end(kind), query('select 7'))
      const heard = await client.answers(2)
      expect(heard.filter((one) => /^[CEZ]/.test(one))).toEqual([
        ...['E 22P02 invalid input syntax for type integer: "x"', 'Z I', 'C SELECT 1', 'Z I'],
      ])
      expect(await counts()).toEqual([0, 0, 0])
    })

    it('is part of a transaction', async () => {
      for (const [last, wanted] of [
        ['rollback', [0, 0, 0]],
        ['commit', [4, 4, 4]],
      ] as const) {
        await client.query('begin').answers()
        await begin(kind)
        write(...rows(12).map(data), done, ...end(kind))
        expect(await client.answers()).toEqual(['C COPY 12', 'Z T'])
        await client.query(last).answers()
        expect(await counts()).toEqual(wanted)
      }
      await client.query('begin').answers()
      await begin(kind)
      write(data('x\n'), done, ...end(kind))
      expect((await client.answers()).at(-1)).toBe('Z E')
      await client.query('rollback').answers()
      expect(await counts()).toEqual([4, 4, 4])
    })
  })

  it('gives every shard the rows of a reference table and counts them once', async () => {
    await begin('simple', 'copy country from stdin')
    write(data('it\nes\n'), done)
    expect(await client.answers()).toEqual(['C COPY 2', 'Z I'])
    expect(await counts('country')).toEqual([2, 2, 2])
  })

  it('D56: holds little while a shard stands still, and loses nothing', async () => {
    const status = `/proc/${rig().served.program.pid}/status`
    const rssKb = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(status, 'utf8'))![1])
    const value = '123456'.padStart(200, '0')
    const rows = 10_000
    const block = Array.from({ length: rows }, (_, n) => `${n}\t${value}\n`).join('')
    let blocks = 1
    await begin('simple', 'copy big from stdin')
    write(data(block))
    const backend = await waitFor(async () => {
      const sql =
        'select pid from pg_stat_progress_copy where datname = current_database() and tuples_processed > 0'
      return (await rig().onShard(1, sql))[0]?.['pid'] as number | undefined
    })
    const before = rssKb()
    process.kill(backend, 'SIGSTOP')
    try {
      // Until nothing more leaves us: serve reads no further, and the kernel is full on the way (it keeps up to tcp_rmem).
      let waiting = -1
      await waitFor(
        () => {
          const last = waiting
          waiting = client.socket.writableLength
          for (let more = 0; waiting === 0 && more < 4; more++, blocks++) write(data(block))
          return waiting > 0 && waiting === last
        },
        { deadlineMs: 60_000, intervalMs: 250 },
      )
      write(done)
      expect(rssKb() - before).toBeLessThan(64 * 1024)
    } finally {
      process.kill(backend, 'SIGCONT')
    }
    await waitFor(() => client.heard.includes('Z I'), { deadlineMs: 60_000 })
    expect(client.heard).toContain(`C COPY ${blocks * rows}`)
    const all = (await counts('big')) as number[]
    expect(all.reduce((sum, n) => sum + n, 0)).toBe(blocks * rows)
  }, 120_000)
})

/** Gathered reads that are too large, too slow, cancelled, cut off or many at once: one error, and every server is clean. */
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { sendCancel } from '../../support/send-cancel.js'
import { waitFor } from '../../support/wait-for.js'
import { failureOf, type GatherRig, SHARDS, useGatherRig, withClient } from './gather-rig.js'

const fillWide = (rig: GatherRig, rows: number) =>
  rig.everywhere(
    `insert into wide select i, repeat('v', 40) || i from generate_series(1, ${rows}) i`,
  )

/** Takes minutes where it finishes. */
const slow = 'select count(distinct a.v || b.v) from wide a, wide b, wide c'

/** Sessions of shards that work for somebody. */
const working = async (rig: GatherRig): Promise<number> => {
  const rows = await rig.onShard(
    0,
    `select count(*)::int as n from pg_stat_activity where state = 'active' and query ~ 'wide a' and pid <> pg_backend_pid()`,
  )
  return Number(rows[0]!['n'])
}

describe('bounds', () => {
  const rig = useGatherRig(['gather_max_rows = 900', 'gather_max_bytes = 200000'])
  beforeAll(() => fillWide(rig(), 2000))

  it('gather_max_rows stops with 54000, says how to go on, and leaves nothing', async () => {
    await withClient(rig().served, async (client) => {
      for (const begin of ['rollback', 'begin']) {
        await client.query(begin)
        const failed = await failureOf(client.query('select count(distinct k) from wide'))
        expect(failed).toMatchObject({
          code: '54000',
          hint: expect.stringContaining('gather_max_rows'),
        })
        await client.query('rollback')
        await rig().expectClean()
        // what a filter keeps is what counts
        const { rows } = await client.query(
          'select count(distinct v)::int as n from wide where k between 10 and 39',
        )
        expect(rows).toEqual([{ n: 30 }])
      }
    })
  })

  it('gather_max_bytes does so too', async () => {
    const bytes = await withClient(rig().served, async (client) => {
      await rig().everywhere("insert into wide values (-1, repeat('long', 40000))")
      return failureOf(client.query('select count(distinct v) from wide where k < 6'))
    })
    expect(bytes).toMatchObject({
      code: '54000',
      hint: expect.stringContaining('gather_max_bytes'),
    })
    await rig().expectClean()
  })
})

describe('what ends early', () => {
  const rig = useGatherRig(['default_pool_size = 8'])
  beforeAll(() => fillWide(rig(), 3000))

  const next = async (client: pg.Client): Promise<unknown> =>
    (await client.query('select count(distinct k)::int as n from wide')).rows[0]

  it.each(['rollback', 'begin'])(
    'a cancel reaches the server that finishes (%s)',
    async (begin) => {
      await withClient(rig().served, async (client) => {
        await client.query(begin)
        const failed = failureOf(client.query(slow))
        await waitFor(async () => (await working(rig())) > 0)
        await sendCancel(client, rig().served.port)
        expect((await failed).code).toBe('57014')
        await client.query('rollback')
        await rig().expectClean()
        expect(await next(client)).toEqual({ n: 3000 })
      })
      expect(await working(rig())).toBe(0)
    },
  )

  it('statement_timeout holds for it', async () => {
    await withClient(rig().served, async (client) => {
      await client.query("set statement_timeout to '300ms'")
      expect((await failureOf(client.query(slow))).code).toBe('57014')
      await client.query('reset statement_timeout')
      await rig().expectClean()
      expect(await next(client)).toEqual({ n: 3000 })
    })
  })

  it('a client that vanishes leaves no work and no copies', async () => {
    const client = await rig().served.connect()
    client.on('error', () => undefined)
    client.query(slow).catch(() => undefined)
    await waitFor(async () => (await working(rig())) > 0)
    ;(
      client as unknown as { connection: { stream: { destroy(): void } } }
    ).connection.stream.destroy()
    await waitFor(async () => (await working(rig())) === 0)
    await waitFor(() =>
      rig()
        .expectClean()
        .then(() => true),
    )
  })

  it('D132: a server that is lost gives one error, and the next statement is answered', async () => {
    await withClient(rig().served, async (client) => {
      for (const begin of ['rollback', 'begin']) {
        await client.query(begin)
        const failed = failureOf(client.query(slow))
        await waitFor(async () => (await working(rig())) > 0)
        await rig().onShard(
          0,
          `select pg_terminate_backend(pid) from pg_stat_activity where state = 'active' and query ~ 'wide a' and pid <> pg_backend_pid()`,
        )
        expect((await failed).code).toMatch(/^(?:57P01|08006)$/)
        await client.query('rollback')
        expect(await next(client)).toEqual({ n: 3000 })
        await rig().expectClean()
      }
    })
  })

  it('the same names gathered by many at once are everybody’s own', async () => {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        withClient(rig().served, async (client) => {
          const seen: unknown[] = []
          for (let round = 0; round < 6; round++) {
            if (i % 3 === 0) await client.query('begin')
            const { rows } = await client.query(
              `select count(distinct w.v)::int as n, max(w.k)::int as m from wide w where w.k <= $1`,
              [100 + i],
            )
            if (i % 3 === 0) await client.query('commit')
            seen.push(rows[0])
          }
          return seen
        }),
      ),
    )
    for (const [i, seen] of answers.entries()) {
      expect(seen).toEqual(new Array(6).fill({ n: 100 + i, m: 100 + i }))
    }
    await rig().expectClean()
  })
})

describe('pools of one server', () => {
  const rig = useGatherRig(['default_pool_size = 1', 'checkout_timeout = 3000'])
  beforeAll(() => fillWide(rig(), 50))

  it('outside a transaction one server a shard is enough', async () => {
    const all = await Promise.all(
      Array.from({ length: 6 }, () =>
        withClient(rig().served, async (client) => {
          const { rows } = await client.query('select count(distinct v)::int as n from wide')
          return rows[0].n
        }),
      ),
    )
    expect(all).toEqual(new Array(6).fill(50))
  })

  it('inside one it says that it cannot, and does not hang', async () => {
    await withClient(rig().served, async (client) => {
      await client.query('begin')
      const failed = await failureOf(client.query('select count(distinct v) from wide'))
      expect(failed.code).toMatch(/^(?:40001|53300)$/)
      await client.query('rollback')
      await rig().expectClean()
      const { rows } = await client.query('select count(distinct v)::int as n from wide')
      expect(rows).toEqual([{ n: 50 }])
    })
  })
})

describe('configuration', () => {
  const off = useGatherRig(['cross_shard_gather = "off"'])
  const named = useGatherRig(
    ['gather_functions = ["random", "twice"]'],
    ['pooler_mode = "session"'],
  )

  it('cross_shard_gather = off refuses', async () => {
    const failed = await withClient(off().served, (client) =>
      failureOf(client.query('select count(distinct v) from wide')),
    )
    expect(failed.code).toBe('0A000')
  })

  it('gather_functions are allowed, also to a client that keeps its servers', async () => {
    await named().everywhere(
      'create function twice(int) returns int language sql stable as $$ select $1 * 2 $$',
    )
    await fillWide(named(), SHARDS)
    await withClient(named().served, async (client) => {
      await waitFor(async () => {
        const { rows } = await client.query(
          'select count(distinct v)::int as n, max(twice(k::int)) as t, random() < 2 as r from wide',
        )
        expect(rows).toEqual([{ n: 3, t: 6, r: true }])
        return true
      })
      const { rows } = await client.query(
        "select count(*)::int as n from pg_class where relname = 'wide' and relpersistence = 't'",
      )
      expect(rows).toEqual([{ n: 0 }])
      await named().expectClean()
    })
  })
})

/** Clients that do not read, and clients that do not get to the end of what they say: neither grows serve, nor holds the others up. */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { say, WireClient } from '../../support/wire-client.js'

const SLOW = 16
/** Of each answer that is not read. */
const ANSWER_ROWS = bySize(60, 200)
const ROW_BYTES = 500_000
const COPY_MB = bySize(30, 100)
/** Far below what was asked for or claimed; the heap breathes. */
const GROWTH_KB = 60_000

const residentKb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])

describe('slow clients', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: [`default_pool_size = ${SLOW + 2}`, `min_pool_size = ${SLOW + 2}`],
    })
    await postgres().query('create table copied (n int, filler text)')
  })

  it('D221: do not grow serve when they do not read, and do not delay the others', async () => {
    const fast = await WireClient.open(served)
    const slow = await Promise.all(Array.from({ length: SLOW }, () => WireClient.open(served)))
    await Promise.all([fast, ...slow].map((client) => client.rows('select 1')))
    const before = residentKb(served.program.pid)
    for (const client of slow) {
      client.socket.pause()
      client.send(
        say.query(`select repeat('x', ${ROW_BYTES}) from generate_series(1, ${ANSWER_ROWS})`),
      )
    }
    // all of the way is full: the servers wait for serve, and serve for its clients
    await waitFor(async () => {
      const [row] = await postgres().query(
        "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event = 'ClientWrite'",
      )
      return row?.['n'] === SLOW
    })
    expect(residentKb(served.program.pid) - before).toBeLessThan(GROWTH_KB)
    for (let n = 0; n < 200; n++) expect(await fast.rows(`select ${n}`)).toEqual([[String(n)]])
    const sizes = await Promise.all(
      slow.map(async (client) => {
        client.socket.resume()
        let rows = 0
        for (;;) {
          const { tag, body } = await client.next()
          if (tag === 'D' && body.length === ROW_BYTES + 6) rows++
          if (tag === 'Z') return rows
        }
      }),
    )
    expect(sizes).toEqual(slow.map(() => ANSWER_ROWS))
    await Promise.all([fast, ...slow].map((client) => client.end()))
  })

  it('D221: do not grow serve when they claim much and say little', async () => {
    const before = residentKb(served.program.pid)
    const clients = await Promise.all(Array.from({ length: 200 }, () => WireClient.open(served)))
    const claim = Buffer.alloc(5)
    claim.write('Q')
    claim.writeInt32BE(500_000_000, 1)
    for (const client of clients) client.send(claim, Buffer.alloc(1000, 0x20))
    const strangers = Array.from({ length: 200 }, () => {
      const socket = connect(served.port, '127.0.0.1').on('error', () => undefined)
      socket.write(Buffer.from([0, 0, 0x20, 0, 0, 3]))
      return socket
    })
    const other = await WireClient.open(served)
    for (let round = 0; round < 20; round++) {
      for (const client of clients) client.send(Buffer.alloc(10, 0x20))
      expect(await other.rows('select 1')).toEqual([['1']])
    }
    expect(residentKb(served.program.pid) - before).toBeLessThan(GROWTH_KB)
    for (const client of clients) client.socket.destroy()
    for (const socket of strangers) socket.destroy()
    await other.end()
  })

  it(`D56: COPY of ${COPY_MB} MB passes in little memory`, async () => {
    const client = await WireClient.open(served)
    await client.rows('select 1')
    const before = residentKb(served.program.pid)
    client.send(say.query('copy copied from stdin'))
    expect((await client.next()).tag).toBe('G')
    const line = Buffer.from(`1\t${'y'.repeat(997)}\n`)
    const frame = Buffer.alloc(5 + 64 * line.length)
    frame.write('d')
    frame.writeInt32BE(frame.length - 1, 1)
    for (let i = 0; i < 64; i++) line.copy(frame, 5 + i * line.length)
    const frames = Math.ceil((COPY_MB * 1_000_000) / frame.length)
    let most = 0
    for (let i = 0; i < frames; i++) {
      if (!client.socket.write(frame)) {
        most = Math.max(most, residentKb(served.program.pid))
        await new Promise((resolve) => client.socket.once('drain', resolve))
      }
    }
    client.send(say.copyDone())
    const answer = await client.untilReady()
    expect(answer.map(({ tag }) => tag).join('')).toBe('CZ')
    expect(most - before).toBeLessThan(GROWTH_KB)
    expect(await client.rows('select count(*) from copied')).toEqual([[String(frames * 64)]])
    await client.end()
  })

  it('D57: CopyFail leaves no rows, and the session goes on', async () => {
    const client = await WireClient.open(served)
    await client.rows('truncate copied')
    client.send(say.query('copy copied from stdin'))
    expect((await client.next()).tag).toBe('G')
    client.send(say.copyData('1\tone\n2\ttwo\n'), say.copyFail('changed my mind'))
    const answer = await client.untilReady()
    expect(answer.map(({ tag }) => tag).join('')).toBe('EZ')
    expect(answer[0]?.body.toString()).toContain('COPY from stdin failed: changed my mind')
    expect(await client.rows('select count(*) from copied')).toEqual([['0']])
    await client.end()
  })

  it(
    'D21: statements leave no memory behind',
    async () => {
      const clients = await Promise.all(Array.from({ length: 8 }, () => WireClient.open(served)))
      const batch = 100
      const burst = (client: WireClient, round: number) =>
        client.ask(
          Array.from({ length: batch }, (_, n) => [
            say.parse('', `select ${round}, ${n}, $1::text`),
            say.bind('', ['value']),
            say.execute(),
            say.sync(),
          ]).flat(),
          batch,
        )
      const rounds = async (from: number, to: number) => {
        for (let round = from; round < to; round++)
          await Promise.all(clients.map((client) => burst(client, round)))
      }
      const many = bySize(8, 600)
      await rounds(0, many)
      const warm = residentKb(served.program.pid)
      await rounds(many, 3 * many)
      expect(residentKb(served.program.pid) - warm).toBeLessThan(GROWTH_KB)
      await Promise.all(clients.map((client) => client.end()))
    },
    bySize(60_000, 300_000),
  )
})

/** Rows of several shards through one taker, without servers: order, forms, bounds, and streams cut anywhere. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Taken, type TakeRows, takeRows } from '../../../src/gather/take-rows.js'
import { ReplyScanner } from '../../../src/server/reply-scanner.js'
import type { ServerConnection, ServerReceiver } from '../../../src/server/server-connection.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { backend, frontend } from '../../../src/wire/tags.js'

/** As much of a connection as is asked of one. */
class FakeServer {
  readonly written: Buffer[] = []
  receiver: ServerReceiver | undefined
  closed = false
  takesMore = true
  isPaused = false
  readonly socket = {
    pause: () => {
      this.isPaused = true
    },
    resume: () => {
      this.isPaused = false
    },
  }

  write(bytes: Buffer): boolean {
    this.written.push(Buffer.from(bytes))
    return this.takesMore
  }

  ready(): void {
    // nobody asks
  }

  parameterStatus(): void {
    // nobody asks
  }

  get asConnection(): ServerConnection {
    return this as unknown as ServerConnection
  }

  /** What the server says, cut into reads. */
  says(bytes: Buffer, cuts: readonly number[] = []): void {
    const scanner = new ReplyScanner(this.receiver!)
    let from = 0
    for (const cut of [
      ...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b),
      bytes.length,
    ]) {
      if (cut > from) scanner.push(Buffer.from(bytes.subarray(from, cut)))
      from = Math.max(from, cut)
    }
  }
}

const writer = () => new FrameWriter()
const copyOut = writer().begin(backend.copyOutResponse).byte(0).int16(0).end().take()
const copyDone = writer().begin(backend.copyDone).end().take()
const ready = writer().begin(backend.readyForQuery).byte(0x49).end().take()
const data = (body: Buffer | string): Buffer =>
  writer().begin(backend.copyData).bytes(Buffer.from(body)).end().take()

const signature = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const trailer = Buffer.from([0xff, 0xff])

/** COPY TO in binary, as a server sends it: the signature stands before the first row, or the trailer. */
function binaryCopy(rows: readonly Buffer[]): Buffer {
  const [first = trailer, ...rest] = [...rows, trailer]
  const frames = [data(Buffer.concat([signature, first])), ...rest.map(data)]
  return Buffer.concat([copyOut, ...frames, copyDone])
}

const textCopy = (lines: readonly string[]): Buffer =>
  Buffer.concat([copyOut, ...lines.map((line) => data(`${line}\n`)), copyDone])

/** Bodies of the CopyData that the finisher was sent, table by table. */
function taken(finisher: FakeServer): Buffer[][] {
  const tables: Buffer[][] = [[]]
  const bytes = Buffer.concat(finisher.written)
  for (let at = 0; at < bytes.length; ) {
    const next = at + 1 + bytes.readInt32BE(at + 1)
    if (bytes[at] === frontend.copyData) tables.at(-1)!.push(bytes.subarray(at + 5, next))
    if (bytes[at] === frontend.copyDone) tables.push([])
    at = next
  }
  return tables.slice(0, -1)
}

function rig(
  job: Pick<TakeRows, 'formats'> & { sources: readonly (readonly number[])[] },
  more: Partial<TakeRows> & { isTogether?: boolean; columns?: readonly number[] } = {},
) {
  const finisher = new FakeServer()
  const servers = job.sources.map(() => new FakeServer())
  let cancels = 0
  const done: Promise<Taken> = takeRows({
    finisher: finisher.asConnection,
    loadSql: 'load',
    formats: job.formats,
    sources: job.sources.map((tables, i) => ({
      server: servers[i]!.asConnection,
      sql: 'copy',
      isTogether: more.isTogether ?? false,
      tables: tables.map((number) => ({
        number,
        format: job.formats[number]!,
        columns: more.columns?.[number] ?? 1,
      })),
    })),
    limits: { maxRows: 1000, maxBytes: 1_000_000 },
    failed: () => cancels++,
    ...more,
  })
  done.catch(() => undefined)
  return { finisher, servers, done, cancels: () => cancels }
}

const row = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0, 1, 0, 0, 0, text.length]), Buffer.from(text)])

describe('takeRows', () => {
  it('binary: one signature and one trailer a table, rows of all shards between, however reads are cut', async () => {
    const shard = fc.record({
      a: fc.array(fc.string({ maxLength: 9, unit: 'grapheme-ascii' }), { maxLength: 6 }),
      b: fc.array(fc.string({ maxLength: 9, unit: 'grapheme-ascii' }), { maxLength: 6 }),
      cuts: fc.array(fc.nat(), { maxLength: 8 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(shard, { minLength: 1, maxLength: 3 }), async (shards) => {
        const { finisher, servers, done } = rig({
          formats: ['binary', 'binary'],
          sources: shards.map(() => [0, 1]),
        })
        for (const [i, { a, b, cuts }] of shards.entries()) {
          servers[i]!.says(
            Buffer.concat([binaryCopy(a.map(row)), binaryCopy(b.map(row)), ready]),
            cuts,
          )
        }
        finisher.says(ready)
        const { rows } = await done
        const expected = [shards.flatMap(({ a }) => a), shards.flatMap(({ b }) => b)].map(
          (texts) => [
            signature.toString('latin1'),
            ...texts.map((text) => row(text).toString('latin1')),
            trailer.toString('latin1'),
          ],
        )
        const got = taken(finisher).map((bodies) => bodies.map((body) => body.toString('latin1')))
        expect(got.map((bodies) => bodies.toSorted())).toEqual(
          expected.map((bodies) => bodies.toSorted()),
        )
        for (const bodies of got) {
          expect(bodies[0]).toBe(signature.toString('latin1'))
          expect(bodies.at(-1)).toBe(trailer.toString('latin1'))
        }
        expect(rows).toBe(shards.reduce((sum, { a, b }) => sum + a.length + b.length, 0))
      }),
      { numRuns: 60 },
    )
  })

  it('one COPY of several tables is taken apart by its numbers, whatever the lengths', async () => {
    const { finisher, servers, done } = rig(
      {
        formats: ['text', 'text'],
        sources: [
          [0, 1],
          [0, 1],
        ],
      },
      { isTogether: true, columns: [1, 2] },
    )
    servers[0]!.says(Buffer.concat([textCopy(['0\t\\N\t\\N', '1\tx\ty']), ready]))
    servers[1]!.says(Buffer.concat([textCopy(['1\tlonger text\t\\N']), ready]))
    finisher.says(ready)
    await done
    expect(taken(finisher).map((bodies) => bodies.map(String))).toEqual([
      ['\\N\n'],
      ['x\ty\n', 'longer text\t\\N\n'],
    ])
  })

  it('a length that reads as a tab is no tab', async () => {
    const { finisher, servers, done } = rig(
      { formats: ['text', 'text'], sources: [[0, 1]] },
      { isTogether: true },
    )
    servers[0]!.says(Buffer.concat([textCopy(['0\tab', '1\tcd']), ready]))
    finisher.says(ready)
    await done
    expect(taken(finisher).map((bodies) => bodies.map(String))).toEqual([['ab\n'], ['cd\n']])
  })

  it('a shard that is ahead waits, unread, and a full socket stops all', async () => {
    const { finisher, servers, done } = rig({ formats: ['text', 'text'], sources: [[0, 1], [0]] })
    const [fast, slow] = servers as [FakeServer, FakeServer]
    fast.says(Buffer.concat([textCopy(['a1']), textCopy(['b1'])]))
    expect(fast.isPaused).toBe(true)
    finisher.takesMore = false
    slow.says(Buffer.concat([copyOut, data('a2\n')]))
    expect(slow.isPaused).toBe(true)
    finisher.takesMore = true
    finisher.receiver!.drained!()
    expect([fast.isPaused, slow.isPaused]).toEqual([true, false])
    slow.says(Buffer.concat([copyDone, ready]))
    expect(fast.isPaused).toBe(false)
    fast.says(ready)
    finisher.says(ready)
    expect(await done).toEqual({ rows: 3, bytes: 24 })
    expect(taken(finisher).map((bodies) => bodies.map(String))).toEqual([
      ['a1\n', 'a2\n'],
      ['b1\n'],
    ])
  })

  it('stops at the bound, tells once, fails the load, and waits for every server', async () => {
    const { finisher, servers, done, cancels } = rig(
      { formats: ['text'], sources: [[0], [0]] },
      { limits: { maxRows: 2, maxBytes: 1000 } },
    )
    servers[0]!.says(textCopy(['1', '2', '3']))
    expect(cancels()).toBe(1)
    expect(finisher.written.at(-1)![0]).toBe(frontend.copyFail)
    let isOver = false
    void done.catch(() => (isOver = true))
    for (const server of servers) server.says(ready)
    await Promise.resolve()
    expect(isOver).toBe(false)
    finisher.says(ready)
    await expect(done).rejects.toMatchObject({ code: 'GATHER_TOO_MANY_ROWS' })
  })

  it('counts what stood on the finishing server already', async () => {
    const { finisher, done } = rig(
      { formats: [], sources: [] },
      { limits: { maxRows: 9, maxBytes: 100 } },
    )
    const inserted = writer().begin(backend.commandComplete).cstring('INSERT 0 4').end().take()
    const size = writer().begin(backend.dataRow).int16(1).value(Buffer.from('101')).end().take()
    finisher.says(Buffer.concat([inserted, size, ready]))
    await expect(done).rejects.toMatchObject({ code: 'GATHER_TOO_MANY_BYTES' })
  })
})

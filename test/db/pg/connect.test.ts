/** Connections and COPY over pg against real servers and listeners that misbehave. */
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { isEngineError } from '../../../src/errors/engine-error.js'
import { adminQuery, closePg, inTransaction } from '../../../src/pg/admin-query.js'
import { clientWhere, connectPg, eachHost } from '../../../src/pg/connect.js'
import { openCopyIn } from '../../../src/pg/copy-in.js'
import { copyOut } from '../../../src/pg/copy-out.js'
import { freePort } from '../../support/free-port.js'
import { usePostgres } from '../../support/use-postgres.js'

const postgres = usePostgres({ count: 2 })

const listeners: { server: Server; sockets: Set<Socket> }[] = []
afterEach(() => {
  for (const { server, sockets } of listeners.splice(0)) {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
})

/** A listener that answers the startup packet with an ErrorResponse, closes ("eof") or says nothing ("hang"). */
async function fake(kind: string, closes = true): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      if (kind === 'hang') return
      if (chunk.length === 8) {
        socket.write('N')
        return
      }
      if (kind !== 'eof') {
        const body = Buffer.from(`SFATAL\0VFATAL\0C${kind}\0Mfake ${kind}\0\0`)
        const head = Buffer.alloc(5, 'E')
        head.writeInt32BE(body.length + 4, 1)
        socket.write(Buffer.concat([head, body]))
      }
      if (closes) socket.end()
    })
  })
  listeners.push({ server, sockets })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return (server.address() as { port: number }).port
}

function conninfo(ports: readonly number[], more = ''): string {
  const { user, database } = postgres()
  const hosts = ports.map(() => '127.0.0.1').join(',')
  return `host=${hosts} port=${ports.join(',')} user=${user} dbname=${database} ${more}`
}

const portOf = (server: number): number => postgres().servers[server]!.port

async function reached(text: string): Promise<number> {
  const client = await connectPg(text)
  const rows = await adminQuery(client, 'show port')
  await closePg(client)
  return Number(rows[0]?.['port'])
}

async function failure(work: Promise<unknown>) {
  const error = await work.then(
    () => new Error('no error'),
    (thrown: unknown) => thrown,
  )
  if (!isEngineError(error)) throw error
  return error
}

describe('which failures go on to the next host', () => {
  test('L27: refused goes on', async () => {
    expect(await reached(conninfo([await freePort(), portOf(0)]))).toBe(portOf(0))
  })

  test('ports pair by position', async () => {
    expect(await reached(conninfo([await freePort(), portOf(1)]))).toBe(portOf(1))
  })

  test('57P03 goes on', async () => {
    expect(await reached(conninfo([await fake('57P03'), portOf(0)]))).toBe(portOf(0))
  })

  test.each(['28P01', '53300', '3D000'])('%s ends the search', async (code) => {
    const error = await failure(connectPg(conninfo([await fake(code), portOf(0)])))
    expect(error.message).toContain(`failed: FATAL:  fake ${code}`)
    expect(error.message.split('connection to server').length).toBe(2)
    expect(error.hint).toBeDefined()
    expect(error.exitCode).toBe(4)
  })

  test('a closed connection ends the search', async () => {
    const error = await failure(connectPg(conninfo([await fake('eof'), portOf(0)])))
    expect(error.message).toContain('server closed the connection unexpectedly')
  })

  test('L28: silence goes on after connect_timeout', async () => {
    const text = conninfo([await fake('hang'), portOf(0)], 'connect_timeout=1')
    const startMs = performance.now()
    expect(await reached(text)).toBe(portOf(0))
    const elapsedMs = performance.now() - startMs
    expect(elapsedMs).toBeGreaterThan(900)
    expect(elapsedMs).toBeLessThan(5000)
  })

  test('a primary is no standby', async () => {
    const text = conninfo([portOf(0)], 'target_session_attrs=standby')
    const error = await failure(connectPg(text))
    expect(error.message).toMatch(/server is not in hot standby mode$/)
    expect(await reached(conninfo([portOf(1)], 'target_session_attrs=read-write'))).toBe(portOf(1))
    expect(await reached(conninfo([portOf(1)], 'target_session_attrs=prefer-standby'))).toBe(
      portOf(1),
    )
  })

  test('random reaches both, also when asked for read-write', async () => {
    const text = conninfo([portOf(0), portOf(1)], 'load_balance_hosts=random')
    const ports = new Set<number>()
    for (let i = 0; i < 24; i++) ports.add(await reached(text))
    expect(ports.size).toBe(2)
  })
})

describe('messages', () => {
  test('a missing database', async () => {
    const { user } = postgres()
    const error = await failure(
      connectPg(`host=127.0.0.1 port=${portOf(0)} user=${user} dbname=nosuchdb`),
    )
    expect(error).toMatchObject({ code: 'CONNECT_NO_DATABASE', exitCode: 4 })
    expect(error.message).toContain('database "nosuchdb" does not exist')
  })

  test('a failed statement keeps SQLSTATE, position and place', async () => {
    const client = await connectPg(postgres().url())
    const error = await failure(adminQuery(client, 'select nosuch'))
    expect(error).toMatchObject({ sqlstate: '42703', position: 8 })
    expect(error.message).toContain(`${clientWhere(client)}: column "nosuch" does not exist`)
    await closePg(client)
  })

  test('every host alone', () => {
    const all = eachHost(conninfo([1, 2]))
    expect(all.map(({ hosts }) => hosts.map((host) => host.port))).toEqual([[1], [2]])
  })

  test.each([true, false])(
    'L66: connections that fail leave no descriptor open (server closes: %s)',
    async (closes) => {
      const port = await fake('28P01', closes)
      const { readdirSync } = await import('node:fs')
      const open = () => readdirSync('/proc/self/fd').length
      await failure(connectPg(conninfo([port])))
      const before = open()
      for (let i = 0; i < 50; i++) await failure(connectPg(conninfo([port])))
      await expect.poll(open, { timeout: 3000 }).toBeLessThanOrEqual(before + 4)
    },
  )
})

describe('text rows', () => {
  test('values come as PostgreSQL writes them', async () => {
    const client = await connectPg(postgres().url())
    const rows = await adminQuery(
      client,
      'select 9223372036854775807 as big, 1.10::numeric as n, null as nothing, \'{"a": 1.0}\'::jsonb as j, $1::int + 1 as p',
      [41],
    )
    expect(rows).toEqual([
      { big: '9223372036854775807', n: '1.10', nothing: null, j: '{"a": 1.0}', p: '42' },
    ])
    await closePg(client)
  })

  test('a transaction that throws is rolled back', async () => {
    const client = await connectPg(postgres().url())
    await adminQuery(client, 'create temp table t(a int)')
    await expect(
      inTransaction(client, async () => {
        await adminQuery(client, 'insert into t values (1)')
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    expect(await adminQuery(client, 'select * from t')).toEqual([])
    await closePg(client)
  })
})

describe('COPY', () => {
  test('out: all bytes, in order, with back-pressure', async () => {
    const client = await connectPg(postgres().url())
    let text = ''
    let isBusy = false
    const result = await copyOut(
      client,
      "copy (select g, repeat('x', 200) from generate_series(1, 20000) g) to stdout",
      async (chunk) => {
        expect(isBusy).toBe(false)
        isBusy = true
        text += chunk.toString('latin1')
        await new Promise(setImmediate)
        isBusy = false
      },
    )
    const lines = text.trimEnd().split('\n')
    expect([result.rows, lines.length, result.bytes]).toEqual([20_000, 20_000, text.length])
    expect(lines[19_999]).toMatch(/^20000\t/)
    expect(await adminQuery(client, 'select 1 as a')).toEqual([{ a: '1' }])
    await closePg(client)
  })

  test('out: an error of the server comes whole, and the connection lives', async () => {
    const client = await connectPg(postgres().url())
    const error = await failure(
      copyOut(
        client,
        'copy (select 1 / (g - 5000) from generate_series(1, 9000) g) to stdout',
        () => undefined,
      ),
    )
    expect(error).toMatchObject({ sqlstate: '22012' })
    expect(await adminQuery(client, 'select 1 as a')).toEqual([{ a: '1' }])
    await closePg(client)
  })

  test('out: breaking off ends the connection and does not hang', async () => {
    const client = await connectPg(postgres().url())
    const work = copyOut(client, 'copy (select generate_series(1, 10000000)) to stdout', () => {
      throw new Error('enough')
    })
    await expect(work).rejects.toThrow('enough')
    await expect(adminQuery(client, 'select 1')).rejects.toThrow()
  })

  test('out: an abort signal breaks it off', async () => {
    const client = await connectPg(postgres().url())
    const abort = new AbortController()
    const work = copyOut(
      client,
      'copy (select generate_series(1, 10000000)) to stdout',
      () => abort.abort(),
      { signal: abort.signal },
    )
    expect(await failure(work)).toMatchObject({ code: 'INTERRUPTED' })
  })

  test('in: rows arrive, with back-pressure', async () => {
    const client = await connectPg(postgres().url())
    await adminQuery(client, 'create temp table t(a int, b text)')
    const copy = openCopyIn(client, 'copy t from stdin')
    const chunk = Buffer.from(`1\t${'x'.repeat(998)}\n`.repeat(100))
    let waits = 0
    for (let i = 0; i < 100; i++) {
      const pending = copy.write(chunk)
      if (pending === undefined) continue
      waits++
      await pending
    }
    expect(await copy.finish()).toBe(10_000)
    expect(waits).toBeGreaterThan(0)
    expect(await adminQuery(client, 'select count(*) from t')).toEqual([{ count: '10000' }])
    await closePg(client)
  })

  test('in: a bad row rejects with the error of the server, and the connection lives', async () => {
    const client = await connectPg(postgres().url())
    await adminQuery(client, 'create temp table t(a int)')
    const copy = openCopyIn(client, 'copy t from stdin')
    const first = copy.write(Buffer.from('1\nx\n'))
    await first
    const error = await failure(copy.finish())
    expect(error).toMatchObject({ sqlstate: '22P02' })
    expect(error.detail).toContain('COPY t, line 2, column a: "x"')
    expect(await adminQuery(client, 'select count(*) from t')).toEqual([{ count: '0' }])
    await closePg(client)
  })

  test('in: a writer hears of a failure while it writes', async () => {
    const client = await connectPg(postgres().url())
    await adminQuery(client, 'create temp table t(a int)')
    const copy = openCopyIn(client, 'copy t from stdin')
    const chunk = Buffer.from('x\n'.repeat(50_000))
    const writing = async () => {
      for (let i = 0; i < 10_000; i++) await copy.write(chunk)
    }
    expect(await failure(writing())).toMatchObject({ sqlstate: '22P02' })
    await closePg(client)
  })

  test('in: giving up keeps nothing', async () => {
    const client = await connectPg(postgres().url())
    await adminQuery(client, 'create temp table t(a int)')
    const copy = openCopyIn(client, 'copy t from stdin')
    await copy.write(Buffer.from('1\n'))
    await copy.fail('changed my mind')
    expect(await adminQuery(client, 'select count(*) from t')).toEqual([{ count: '0' }])
    await closePg(client)
  })

  test('in: a backend that dies rejects instead of hanging', async () => {
    const client = await connectPg(postgres().url())
    await adminQuery(client, 'create temp table t(a int)')
    const [row] = await adminQuery(client, 'select pg_backend_pid() as pid')
    const copy = openCopyIn(client, 'copy t from stdin')
    await copy.write(Buffer.from('1\n'))
    await postgres().query(`select pg_terminate_backend(${row?.['pid']})`)
    const error = await failure(copy.finish())
    expect(['57P01', '08006']).toContain(error.sqlstate)
  })

  test('out: a backend that dies rejects instead of hanging', async () => {
    const client = await connectPg(postgres().url())
    const [row] = await adminQuery(client, 'select pg_backend_pid() as pid')
    let isKilled = false
    const work = copyOut(
      client,
      'copy (select generate_series(1, 100000000)) to stdout',
      async () => {
        if (isKilled) return
        isKilled = true
        await postgres().query(`select pg_terminate_backend(${row?.['pid']})`)
      },
    )
    const error = await failure(work)
    expect(['57P01', '08006']).toContain(error.sqlstate)
  })
})

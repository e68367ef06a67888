import { describe, expect, it } from 'vitest'
import { openAdminSession } from '../../../src/admin/admin-session.js'
import { decodeDataRow, decodeRowDescription } from '../../../src/wire/backend-messages.js'
import { decodeErrorFields } from '../../../src/wire/error-response.js'
import { FrameReader } from '../../../src/wire/frame-reader.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import {
  encodeBind,
  encodeClose,
  encodeDescribe,
  encodeEmptyFrontend,
  encodeExecute,
  encodeParse,
  encodeQuery,
} from '../../../src/wire/frontend-messages.js'
import { settled } from '../../support/fake-clock.js'
import { fakeProxy } from './fake-proxy.js'

interface Reply {
  tag: string
  body: Buffer
}

function open() {
  const proxy = fakeProxy()
  const replies: Reply[] = []
  const reader = new FrameReader((tag, buffer, start, end) => {
    replies.push({
      tag: String.fromCharCode(tag),
      body: Buffer.from(buffer.subarray(start + 5, end)),
    })
  })
  const session = openAdminSession(
    (bytes) => reader.push(bytes),
    () => proxy.view,
    proxy.control,
    {
      user: 'admin',
      database: 'pgdog',
    },
  )
  const say = async (...writes: ((writer: FrameWriter) => void)[]): Promise<Reply[]> => {
    const writer = new FrameWriter()
    for (const write of writes) write(writer)
    const frames = new FrameReader((tag, buffer, start, end) =>
      session.frame(tag, buffer.subarray(start + 5, end)),
    )
    frames.push(writer.take())
    for (let i = 0; i < 20; i++) await settled()
    return replies.splice(0)
  }
  const query = (sql: string) => say((writer) => encodeQuery(writer, sql))
  return { ...proxy, say, query }
}

const tags = (replies: Reply[]): string => replies.map((reply) => reply.tag).join('')
const rows = (replies: Reply[]): (string | null)[][] =>
  replies
    .filter((reply) => reply.tag === 'D')
    .map((reply) => decodeDataRow(reply.body).map((cell) => cell?.toString() ?? null))
const errorOf = (replies: Reply[]) =>
  decodeErrorFields(replies.find((reply) => reply.tag === 'E')?.body ?? Buffer.alloc(1))
const namesOf = (replies: Reply[]) =>
  decodeRowDescription(replies.find((reply) => reply.tag === 'T')?.body ?? Buffer.alloc(2)).map(
    (field) => field.name,
  )

describe('simple protocol', () => {
  it('shows pools with the columns that exporters read', async () => {
    const { query } = open()
    const replies = await query('SHOW POOLS')
    expect(tags(replies)).toBe('TDDCZ')
    expect(namesOf(replies).slice(0, 8)).toEqual([
      'id',
      'database',
      'user',
      'addr',
      'port',
      'shard',
      'role',
      'cl_waiting',
    ])
    const row = rows(replies)[0] ?? []
    const at = (name: string) => row[namesOf(replies).indexOf(name)]
    expect([at('sv_idle'), at('sv_active'), at('maxwait'), at('maxwait_us'), at('banned')]).toEqual(
      ['3', '1', '1', '234500', 'f'],
    )
  })

  it('shows the columns asked for, beside those that say who', async () => {
    const { query } = open()
    const replies = await query('SHOW CLIENTS state, pinned_by')
    expect(namesOf(replies)).toEqual(['user', 'database', 'addr', 'port', 'state', 'pinned_by'])
    expect(rows(replies)).toEqual([
      ['alice', 'app', '127.0.0.1', '40000', 'active', 'temporary object'],
    ])
    expect(errorOf(await query('SHOW CLIENTS nonsense'))).toMatchObject({ C: '42704' })
  })

  it('shows bans with what is left of them', async () => {
    const { query } = open()
    expect(rows(await query('SHOW BANS'))).toEqual([
      ['2', 'app', 'alice', '10.0.0.1', '5432', '1', 'primary', 'refused', '1m 1s', '0'],
    ])
  })

  it('gives totals and averages', async () => {
    const { query } = open()
    const replies = await query('SHOW STATS')
    const row = rows(replies)[0] ?? []
    const at = (name: string) => row[namesOf(replies).indexOf(name)]
    expect([
      at('total_xact_count'),
      at('total_query_count'),
      at('avg_query_count'),
      at('total_wait_time'),
    ]).toEqual(['10', '30', '3', '4000'])
  })

  it('does several statements in one string, and stops at the first error', async () => {
    const { query, log } = open()
    const replies = await query('PAUSE app; SHOW VERSION; nonsense; RESUME app')
    expect(tags(replies)).toBe('CTDCEZ')
    expect(log).toEqual(['pause {"database":"app"}'])
  })

  it('answers an empty string, driver settings and parameters', async () => {
    const { query } = open()
    expect(tags(await query(''))).toBe('IZ')
    expect(tags(await query('SET client_encoding TO UTF8'))).toBe('CZ')
    expect(rows(await query('SHOW client_encoding'))).toEqual([['utf8']])
    expect(rows(await query('SHOW server_version_num'))).toEqual([['180000']])
    expect(rows(await query('SHOW port'))).toEqual([['6432']])
    expect(errorOf(await query('SHOW nothing_such'))).toMatchObject({ C: '42704', S: 'ERROR' })
  })

  it('keeps the state of a transaction that a driver opened', async () => {
    const { query } = open()
    expect((await query('BEGIN')).at(-1)?.body.toString()).toBe('T')
    expect((await query('SHOW VERSION')).at(-1)?.body.toString()).toBe('T')
    expect((await query('ROLLBACK')).at(-1)?.body.toString()).toBe('I')
  })

  it('does the commands', async () => {
    const { query, log } = open()
    for (const sql of [
      'RECONNECT',
      'RELOAD',
      'KILL app',
      'KILL',
      'SUSPEND',
      'MAINTENANCE ON app',
      'WAIT_CLOSE',
      'DISABLE app',
      'ENABLE app',
      'HEALTHCHECK 2',
      'RESET PREPARED',
      'FORCE_RELOAD',
      'SET query_timeout TO 5',
      'KILL_CLIENT 3',
      'BAN 2',
      'UNBAN',
      'RESTART WORKERS',
      'SHUTDOWN',
    ])
      expect(tags(await query(sql))).toBe('CZ')
    expect(log).toEqual([
      'reconnect {}',
      'reload',
      'kill app',
      'kill undefined',
      'suspend',
      'maintenance true app',
      'wait close undefined',
      'disable app',
      'enable app',
      'healthcheck 2',
      'reset prepared',
      'force reload',
      'set query_timeout = 5',
      'kill client 3',
      'ban 2',
      'unban undefined',
      'restart workers',
      'shutdown',
    ])
  })
})

describe('extended protocol', () => {
  const sync = (writer: FrameWriter) => encodeEmptyFrontend(writer, 'sync')

  it('describes before it runs, and runs once', async () => {
    const { say, log } = open()
    const replies = await say(
      (w) => encodeParse(w, { name: 's', sql: 'PAUSE app', parameterTypes: [] }),
      (w) => encodeDescribe(w, { kind: 'statement', name: 's' }),
      sync,
    )
    expect(tags(replies)).toBe('1tnZ')
    expect(log).toEqual([])
    const run = await say(
      (w) =>
        encodeBind(w, { portal: '', statement: 's', formats: [], values: [], resultFormats: [] }),
      (w) => encodeExecute(w, { portal: '', maxRows: 0 }),
      sync,
    )
    expect(tags(run)).toBe('2CZ')
    expect(log).toEqual(['pause {"database":"app"}'])
  })

  it('sends rows in portions and in binary', async () => {
    const { say } = open()
    const replies = await say(
      (w) => encodeParse(w, { name: '', sql: 'SHOW POOLS', parameterTypes: [] }),
      (w) =>
        encodeBind(w, { portal: 'p', statement: '', formats: [], values: [], resultFormats: [1] }),
      (w) => encodeDescribe(w, { kind: 'portal', name: 'p' }),
      (w) => encodeExecute(w, { portal: 'p', maxRows: 1 }),
      (w) => encodeExecute(w, { portal: 'p', maxRows: 1 }),
      (w) => encodeClose(w, { kind: 'portal', name: 'p' }),
      sync,
    )
    expect(tags(replies)).toBe('12TDsDC3Z')
    const cells = decodeDataRow(replies.find((one) => one.tag === 'D')?.body ?? Buffer.alloc(0))
    expect(cells[0]?.readBigInt64BE()).toBe(1n)
    expect(cells[1]?.toString()).toBe('app')
  })

  it('skips to Sync after an error', async () => {
    const { say, query } = open()
    const replies = await say(
      (w) => encodeParse(w, { name: '', sql: 'SELECT * FROM t', parameterTypes: [] }),
      (w) =>
        encodeBind(w, { portal: '', statement: '', formats: [], values: [], resultFormats: [] }),
      (w) => encodeExecute(w, { portal: '', maxRows: 0 }),
      sync,
    )
    expect(tags(replies)).toBe('EZ')
    expect(errorOf(replies)).toMatchObject({ C: '0A000', R: 'ADMIN_UNSUPPORTED' })
    expect(tags(await query('SHOW VERSION'))).toBe('TDCZ')
  })

  it('knows no statement or portal that was not made', async () => {
    const { say } = open()
    const bound = await say(
      (w) =>
        encodeBind(w, { portal: '', statement: 'x', formats: [], values: [], resultFormats: [] }),
      sync,
    )
    expect(errorOf(bound)).toMatchObject({ C: '26000' })
  })
})

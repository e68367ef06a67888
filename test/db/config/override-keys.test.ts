/**
 * The keys of [[databases]] and [[users]] that stand in for those of [general], each in an entry of its own before one
 * running serve: what its pools then do, and what those of an entry without it do.
 */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { type RunningServe, startProxy } from '../auth/rig.js'

/** What default_pool_size gives. */
const ROOM = 3

/** Of so many servers some draw a short life. */
const MANY = 16

const postgres = usePostgres({ version: 15, count: 2 })
let proxy: RunningServe
let admin: pg.Client
const blockers: pg.Client[] = []
const clients: pg.Client[] = []

interface Case {
  readonly key: string
  readonly value: number | string | boolean
  /** Another line of its entries. */
  readonly beside?: string
  /** What clients of the entry see. */
  readonly see: (entry: Entry) => Promise<unknown>
  readonly with: unknown
  /** undefined: what `see` waits for would never come. */
  readonly without?: unknown
}

interface Entry {
  connect(): Promise<pg.Client>
  /** Servers open to the primary or the replica. */
  servers(role?: 'primary' | 'replica'): Promise<number>
}

const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  )

/** How many of three statements that wait for a lock get a server each; the rest wait in vain. */
async function held(entry: Entry, role: 'primary' | 'replica'): Promise<number> {
  const sql = role === 'primary' ? 'delete from held' : 'select * from held'
  const three = await Promise.all(Array.from({ length: ROOM }, () => entry.connect()))
  let refused = 0
  let waiting = 0
  const codes = three.map((client) => codeOf(client.query(sql)))
  for (const code of codes)
    void code.then((one) => {
      if (one === '53300') refused++
    })
  await waitFor(async () => {
    waiting = await entry.servers(role)
    return waiting + refused === ROOM
  })
  return waiting
}

const pidOf = async (client: pg.Client) =>
  (await client.query('select pg_backend_pid() as pid')).rows[0].pid

const pidsOfTwo = async (entry: Entry) => {
  const [first, second] = [await entry.connect(), await entry.connect()]
  return [await pidOf(first), await pidOf(second)]
}

/** Opens a server to each role, and waits until none is left. */
const emptied = (role: 'primary' | 'replica') => async (entry: Entry) => {
  const client = await entry.connect()
  await client.query(role === 'primary' ? 'delete from open' : 'select * from open')
  await waitFor(async () => (await entry.servers(role)) === 0)
  return 0
}

const filled = (role?: 'primary' | 'replica') => async (entry: Entry) =>
  waitFor(async () => (await entry.servers(role)) >= 2).then(() => entry.servers(role))

const cases: readonly Case[] = [
  { key: 'pool_size', value: 1, see: (entry) => held(entry, 'primary'), with: 1, without: ROOM },
  {
    key: 'pool_size_primary',
    value: 1,
    see: (entry) => held(entry, 'primary'),
    with: 1,
    without: ROOM,
  },
  {
    key: 'pool_size_replica',
    value: 1,
    see: (entry) => held(entry, 'replica'),
    with: 1,
    without: ROOM,
  },
  { key: 'min_pool_size', value: 2, see: filled(), with: 4 },
  { key: 'min_pool_size_primary', value: 2, see: filled('primary'), with: 2 },
  { key: 'min_pool_size_replica', value: 2, see: filled('replica'), with: 2 },
  { key: 'idle_timeout', value: 100, see: emptied('primary'), with: 0 },
  { key: 'idle_timeout_primary', value: 100, see: emptied('primary'), with: 0 },
  { key: 'idle_timeout_replica', value: 100, see: emptied('replica'), with: 0 },
  {
    key: 'pooler_mode',
    value: 'session',
    see: async (entry) => new Set(await pidsOfTwo(entry)).size,
    with: 2,
    without: 1,
  },
  {
    key: 'server_lifetime',
    value: 100,
    see: async (entry) => {
      const client = await entry.connect()
      const first = await pidOf(client)
      return waitFor(async () => (await pidOf(client)) !== first)
    },
    with: true,
  },
  {
    // A spread of so many days takes a server in two away at once.
    key: 'server_lifetime_jitter',
    value: 8_640_000_000_000,
    beside: `pool_size = ${MANY}`,
    see: async (entry) => {
      const many = await Promise.all(Array.from({ length: MANY }, () => entry.connect()))
      for (const client of many) await client.query('begin; select 1')
      const opened = await entry.servers('primary')
      await Promise.all(many.map((client) => client.query('commit')))
      return waitFor(async () => (await entry.servers('primary')) < opened)
    },
    with: true,
  },
  {
    key: 'statement_timeout',
    value: 50,
    see: async (entry) => codeOf((await entry.connect()).query('select pg_sleep(0.5)')),
    with: '57014',
    without: 'done',
  },
  {
    key: 'lock_timeout',
    value: 50,
    see: async (entry) => {
      const client = await entry.connect()
      await client.query('set statement_timeout = 400')
      return codeOf(client.query('delete from held'))
    },
    with: '55P03',
    without: '57014',
  },
  {
    key: 'read_only',
    value: true,
    see: async (entry) => codeOf((await entry.connect()).query('insert into open values (1)')),
    with: '25006',
    without: 'done',
  },
]

const line = ({ key, value }: Case) =>
  `${key} = ${typeof value === 'string' ? `"${value}"` : value}`
const linesOf = (one: Case) => [line(one), ...(one.beside ? [one.beside] : [])].join('\n')

beforeAll(async () => {
  const { servers, database } = postgres()
  for (const server of servers.keys()) {
    await postgres().query('create table held (a int)', [], server)
    await postgres().query('create table open (a int)', [], server)
    const blocker = await postgres().connect(server)
    await blocker.query('begin; lock table held')
    blockers.push(blocker)
  }
  const hosts = (name: string, lines = '') =>
    servers
      .map(
        ({ host, port }, i) => `
[[databases]]
name = "${name}"
host = "${host}"
port = ${port}
database_name = "${database}"
role = "${i === 0 ? 'primary' : 'replica'}"
${lines}`,
      )
      .join('')
  const user = (name: string, lines: string) => `
[[users]]
name = "${name}"
server_user = "postgres"
password = "x"
${lines}`
  proxy = await startProxy({
    general: [
      'auth_type = "trust"',
      `default_pool_size = ${ROOM}`,
      'min_pool_size = 0',
      'checkout_timeout = 2000',
      'read_write_split = "exclude_primary"',
    ],
    toml: [
      '[admin]\npassword = "x"',
      hosts('bare'),
      ...cases.map((one) => hosts(`of_${one.key}`, linesOf(one))),
    ].join(''),
    users: [
      user('plain', 'all_databases = true'),
      ...cases.map(
        (one) =>
          user(`with_${one.key}`, `database = "bare"\n${linesOf(one)}`) +
          user(`without_${one.key}`, 'database = "bare"'),
      ),
    ].join(''),
  })
  admin = new pg.Client(urlOf('admin', 'pgshard'))
  await admin.connect()
})

afterAll(async () => {
  await Promise.all(blockers.map((blocker) => blocker.query('rollback')))
  await Promise.all([admin, ...clients].map((client) => client.end()))
})

const urlOf = (user: string, database: string) =>
  `postgres://${user}:x@127.0.0.1:${proxy.port}/${database}`

const entryOf = (user: string, database: string): Entry => ({
  connect: async () => {
    const client = new pg.Client(urlOf(user, database))
    client.on('error', () => undefined)
    await client.connect()
    clients.push(client)
    return client
  },
  servers: async (role) => {
    const { rows } = await admin.query('show servers')
    const own = rows.filter((row) => row.user === user && row.database === database)
    return own.filter((row) => role === undefined || row.role === role).length
  },
})

describe.concurrent('an entry with and without', () => {
  test.each(cases)('databases.$key', async (one) => {
    expect(await one.see(entryOf('plain', `of_${one.key}`))).toEqual(one.with)
  })

  test.each(cases)('users.$key', async (one) => {
    expect(await one.see(entryOf(`with_${one.key}`, 'bare'))).toEqual(one.with)
  })

  test.each(cases.filter((one) => one.without !== undefined))('neither: $key', async (one) => {
    expect(await one.see(entryOf(`without_${one.key}`, 'bare'))).toEqual(one.without)
  })
})

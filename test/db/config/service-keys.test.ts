/** Keys of checks, logs, statements and logins that no other page sees at work, each by what a running serve does. */
import { describe, expect, test } from 'vitest'
import { runCli } from '../../support/run-cli.js'
import { waitFor } from '../../support/wait-for.js'
import type { RunningServe } from '../auth/rig.js'
import { failureOf, useKeysRig } from './rig.js'

const { postgres, serve, gateTo, own, connectTo, ask } = useKeysRig()

const lines = (proxy: RunningServe, message: string): Record<string, unknown>[] =>
  proxy.program.stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === message)

describe.concurrent('checks', () => {
  const quiet = 'idle_healthcheck_interval = 0'

  test('idle_healthcheck_delay: the first check comes after it', async () => {
    const proxy = await serve(
      ['idle_healthcheck_delay = 8000', 'idle_healthcheck_interval = 50'],
      [{ port: own() }],
    )
    const from = performance.now()
    const client = await connectTo(proxy)
    await client.query('select 1')
    await waitFor(async () => {
      const [server] = await ask(proxy, 'show servers')
      return Number(server?.['healthchecks']) > 0
    })
    // 5000 ms by default; its time began before serve said that it listens
    expect(performance.now() - from).toBeGreaterThan(6500)
  })

  test('healthcheck_interval: who was not used for so long is checked before it is lent', async () => {
    const proxy = await serve([quiet, 'healthcheck_interval = 20'], [{ port: own() }])
    const client = await connectTo(proxy)
    const other = await postgres().connect()
    await client.query('begin; select 1; commit')
    await other.query('select pg_sleep(0.1)')
    await other.end()
    await client.query('begin; select 1; commit')
    const servers = await ask(proxy, 'show servers')
    const checks = servers.reduce((sum, row) => sum + Number(row['healthchecks']), 0)
    expect(checks, JSON.stringify(servers)).toBeGreaterThan(0)
  })

  test('healthcheck_timeout: a check that hears nothing ends so soon', async () => {
    const gate = await gateTo(0)
    const proxy = await serve(
      [quiet, 'healthcheck_interval = 1', 'healthcheck_timeout = 200'],
      [{ port: gate.port }],
    )
    const client = await connectTo(proxy)
    await client.query('select 1')
    gate.freeze()
    const from = performance.now()
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    // 5000 ms by default
    expect(performance.now() - from).toBeLessThan(4900)
  })
})

describe.concurrent('logs', () => {
  test('log_query_sample_length: the beginning of a statement', async () => {
    const proxy = await serve(
      ['log_min_duration_statement = 0', 'log_query_sample_length = 12', 'log_format = "json"'],
      [{ port: own() }],
    )
    const client = await connectTo(proxy)
    await client.query('select a_name_of_some_length from (select 1) as t(a_name_of_some_length)')
    await waitFor(() => lines(proxy, 'slow statement').length > 0)
    const [line] = lines(proxy, 'slow statement')
    expect(line?.['statement']).toMatch(/^select a_nam.?$/)
  })

  test('log_dedup_threshold: so many equal lines more before they are counted', async () => {
    const proxy = await serve(
      ['log_dedup_window = 60000', 'log_dedup_threshold = 2', 'log_format = "json"'],
      [{ port: own() }],
    )
    for (let i = 0; i < 6; i++) await ask(proxy, 'reload')
    expect(lines(proxy, 'configuration reloaded')).toHaveLength(3)
  })
})

describe.concurrent('statements', () => {
  test('prepared_statements_ttl_jitter: a wide spread closes some at once', async () => {
    const proxy = await serve(
      [
        'default_pool_size = 20',
        'prepared_statements_ttl = 600000',
        'prepared_statements_ttl_jitter = 8640000000000',
      ],
      [{ port: own() }],
    )
    const kept = async () =>
      (await ask(proxy, 'show servers')).reduce(
        (sum, row) => sum + Number(row['prepared_statements']),
        0,
      )
    // one for each server, and in each a time of its own: half of them are over at once
    const clients = await Promise.all(Array.from({ length: 20 }, () => connectTo(proxy)))
    for (const client of clients) {
      await client.query('begin')
      await client.query({ name: 'p', text: 'select $1::int', values: [1] })
    }
    for (const client of clients) await client.query('commit')
    await waitFor(async () => (await kept()) < clients.length)
  })

  test('two_phase_commit of general and users, databases.shard: whether a transaction may write on both', async () => {
    const shards = [postgres().database, await postgres().createDatabase()]
    for (const database of shards) {
      const client = await postgres().connect(0, database)
      await client.query('create table item (k bigint primary key)')
      await client.end()
    }
    const user = (name: string, more = '') =>
      `[[users]]\nname = "${name}"\ndatabase = "app"\npassword = "x"\nserver_user = "postgres"\n${more}\n`
    const proxy = await serve(
      ['two_phase_commit = false'],
      shards.map((database, shard) => ({ port: own(), database, lines: [`shard = ${shard}`] })),
      '[[sharded_tables]]\ndatabase = "app"\nname = "item"\ncolumn = "k"',
      user('one') + user('both', 'two_phase_commit = true'),
    )
    const { configPath, usersPath } = proxy
    const setup = await runCli(['setup', '-c', configPath, '-u', usersPath])
    expect(setup.stderr).toBe('')
    await ask(proxy, 'reload')
    const write = async (name: string, from: number) => {
      const client = await connectTo(proxy, 'app', name)
      await client.query('begin')
      for (let k = from; k < from + 8; k++) await client.query('insert into item values ($1)', [k])
      await client.query('commit')
    }
    expect(await failureOf(write('one', 0))).toBe('0A000')
    await write('both', 100)
    const stats = await ask(proxy, 'show stats')
    const twoPhase = stats.reduce((sum, row) => sum + Number(row['total_xact_2pc_count']), 0)
    expect(twoPhase).toBeGreaterThan(0)
  })
})

describe.concurrent('logins', () => {
  const scram = 'auth_type = "scram"'

  test('auth_query_ttl: a verifier is asked for again after it', async () => {
    const name = 'of_auth_query_ttl'
    await postgres().query(`drop role if exists ${name}`)
    await postgres().query(`create role ${name} login password 'first'`)
    const proxy = await serve(
      [scram, 'auth_query_ttl = 100'],
      [{ port: own() }],
      '',
      '[[users]]\nname = "postgres"\ndatabase = "app"\npassword = "x"\nauth_query = "SELECT usename, passwd FROM pg_shadow WHERE usename=$1"\n',
    )
    await connectTo(proxy, 'app', name, 'first')
    await postgres().query(`alter role ${name} password 'second'`)
    await postgres().query('select pg_sleep(0.15)')
    // within it the first try would be held against the old one
    await connectTo(proxy, 'app', name, 'second')
    await expect(connectTo(proxy, 'app', name, 'first')).rejects.toMatchObject({ code: '28P01' })
  })

  test('users.databases, passwords, password_hash: where and by what a user gets in', async () => {
    const name = 'of_password_hash'
    await postgres().query(`drop role if exists ${name}`)
    await postgres().query(`create role ${name} login password 'of the hash'`)
    const [row] = await postgres().query(
      'select rolpassword as h from pg_authid where rolname = $1',
      [name],
    )
    const proxy = await serve(
      [scram],
      [{ port: own() }, { port: own(), name: 'other' }],
      '',
      `[[users]]\nname = "postgres"\ndatabases = ["app", "other"]\npasswords = ["a", "b"]\n[[users]]\nname = "${name}"\ndatabase = "app"\npassword_hash = "${row?.['h']}"\n`,
    )
    for (const password of ['a', 'b'])
      for (const database of ['app', 'other'])
        await connectTo(proxy, database, 'postgres', password)
    await expect(connectTo(proxy, 'app', 'postgres', 'c')).rejects.toMatchObject({ code: '28P01' })
    await connectTo(proxy, 'app', name, 'of%20the%20hash')
    await expect(connectTo(proxy, 'app', name, 'x')).rejects.toMatchObject({ code: '28P01' })
  })
})

/** What goes wrong around serve is one clear line and a hint, with the right exit code or SQLSTATE; never a stack trace. */
import { createServer, type Server } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CliProgram, type CliResult, runCli } from '../support/run-cli.js'
import { type Served, type ServeSetup, startServe, writeServeConfig } from '../support/serve.js'
import { type Spoiler, startSpoiler } from '../support/spoiler.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'

const PASSWORD = 'right one'
const tables = '[[sharded_tables]]\ndatabase = "app"\nname = "t"\ncolumn = "k"'

const expectNoTrace = (text: string) =>
  expect(text).not.toMatch(/^\s+at |node:internal|\.[jt]s:\d+/m)

/** Lines of a failed start. */
function linesOf({ stdout, stderr }: CliResult): string[] {
  expect(stdout).toBe('')
  expectNoTrace(stderr)
  return stderr.trimEnd().split('\n')
}

/** The error of a statement, or of the login, as a client sees it. */
async function errorOf(work: Promise<unknown>): Promise<Partial<pg.DatabaseError>> {
  const failure: unknown = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(failure instanceof pg.DatabaseError)) throw new Error(`no error of a server: ${failure}`)
  const { severity, code, message, hint, detail } = failure
  expectNoTrace([message, hint, detail].join('\n'))
  expect(message).not.toContain('\n')
  return { severity, code, message, hint } as Partial<pg.DatabaseError>
}

const logLines = (program: CliProgram, pattern: RegExp): string[] =>
  `${program.stdout}${program.stderr}`.split('\n').filter((line) => pattern.test(line))

describe('a start that cannot be', () => {
  const shards = [{ host: '127.0.0.1', port: 1, database: 'x' }]

  it('names all mistakes of the configuration with file and line, exit 3', async () => {
    const file = 'fixtures/config/three-mistakes.toml'
    const result = await runCli(['serve', '--config', file])
    expect(result.code).toBe(3)
    expect(linesOf(result)).toEqual([
      'pgshard: the configuration has 3 problems',
      'DETAIL:',
      `  ${file}:4: unknown key "defualt_pool_size" in [general]; did you mean "default_pool_size"?`,
      `  ${file}:5: pooler_mode must be one of transaction, session, statement, not "transactional"; did you mean "transaction"?`,
      `  ${file}:17: database "shop" has a shard 2 but no shard 1; shards are numbered from 0 without gaps`,
      'HINT: correct the lines named; every key is in docs/config.md',
    ])
  })

  it.each(['config', 'users'])('names a %s file that is missing, exit 3', async (missing) => {
    const files = writeServeConfig({ shards })
    const paths = { config: files.configPath, users: files.usersPath, [missing]: 'nowhere.toml' }
    const result = await runCli(['serve', '--config', paths.config, '--users', paths.users])
    expect(result.code).toBe(3)
    expect(linesOf(result)).toEqual([
      'pgshard: could not open file "nowhere.toml": no such file or directory',
      'HINT: check the path and that this user may read it',
    ])
  })

  it('says which port is in use, exit 4', async () => {
    const taken = await new Promise<Server>((resolve) => {
      const server = createServer().listen(0, '127.0.0.1', () => resolve(server))
    })
    const { port } = taken.address() as { port: number }
    const { configPath, usersPath } = writeServeConfig({ shards })
    const args = ['serve', '--config', configPath, '--users', usersPath, '--port', String(port)]
    const result = await runCli([...args, '--quiet'])
    taken.close()
    expect(result.code).toBe(4)
    expect(linesOf(result)).toEqual([
      `pgshard: could not listen on 127.0.0.1:${port}: the address is in use`,
      'HINT: choose another address or port, or stop the process that uses it',
    ])
  })
})

describe.each([2, 0])('shard %d that is down', (lame) => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  let door: Spoiler
  /** A key of each shard. */
  const keys: number[] = []

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    door = await startSpoiler({ host, port })
    await door.refuse(true)
    const shards: ServeSetup['shards'][number][] = []
    for (let shard = 0; shard < 3; shard++) {
      const database = await postgres().createDatabase()
      const direct = await postgres().connect(0, database)
      await direct.query('create table t (k bigint, v text)')
      await direct.query(
        `create table h (k bigint) partition by hash (k);
         create table h0 partition of h for values with (modulus 3, remainder ${shard})`,
      )
      const { rows } = await direct.query(
        `select k::int from generate_series(1, 100) k
         where satisfies_hash_partition('h'::regclass, 3, ${shard}, k::bigint) limit 1`,
      )
      keys.push(rows[0].k)
      await direct.end()
      shards.push({ host, port: shard === lame ? door.port : port, database })
    }
    served = await startServe({
      shards,
      tables,
      general: ['connect_timeout = 2000', 'healthcheck_interval = 300'],
    })
  })
  afterAll(() => door?.close())

  const working = () => keys.filter((_, shard) => shard !== lame)
  const down = () =>
    `could not connect to shard ${lame} of database "app" at 127.0.0.1:${door.port}`

  it('is a warning at the start', () => {
    const said = logLines(served.program, /WARN/)
    const [line, ...more] = said.filter((one) => one.includes(`WARN  ${down()}`))
    expect(line).toMatch(/: connection refused hint="check that PostgreSQL runs there/)
    expect(more).toEqual([])
    expectNoTrace(served.program.stderr)
  })

  it('is one error with address and hint for a statement that needs it', async () => {
    const client = await served.connect()
    const refused = {
      severity: 'ERROR',
      code: '08001',
      message: `${down()}: connection refused`,
      hint: expect.stringMatching(/^check that PostgreSQL runs there/),
    }
    const insert = 'insert into t values ($1, $2)'
    expect(await errorOf(client.query(insert, [keys[lame], 'down']))).toEqual(refused)
    expect(await errorOf(client.query(`select * from t where k = ${keys[lame]}`))).toEqual(refused)
    expect(await errorOf(client.query('select * from t'))).toEqual(refused)
    // the session goes on
    expect((await client.query(insert, [working()[0], 'up'])).rowCount).toBe(1)
    await client.end()
  })

  it('leaves the other shards, and what any shard can answer, at work', async () => {
    for (let session = 0; session < 6; session++) {
      const client = await served.connect()
      for (const key of working()) {
        await client.query('begin')
        await client.query('insert into t values ($1, $2)', [key, `session ${session}`])
        await client.query('commit')
      }
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
      await client.query("set application_name to 'still here'")
      await client.end()
    }
  })

  it('comes back without a restart', async () => {
    await door.refuse(false)
    await waitFor(() => served.query('insert into t values ($1, $2)', [keys[lame], 'back']))
    expect(await served.query('select v from t where k = $1', [keys[lame]])).toEqual([
      { v: 'back' },
    ])
    const all = await served.query('select distinct_keys.k from t as distinct_keys')
    expect(new Set(all.map(({ k }) => Number(k)))).toEqual(new Set(keys))
  })
})

describe('passwords and names', () => {
  const postgres = usePostgres({ version: 15, password: PASSWORD })
  const shards = () => {
    const { host, port } = postgres().servers[0]!
    return [{ host, port, database: postgres().database }]
  }
  let served: Served

  beforeAll(async () => {
    served = await startServe({ shards: shards(), password: PASSWORD })
  })

  const login = (url: string): Promise<unknown> => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    return client.connect()
  }

  it('refuses a wrong password of a client', async () => {
    const wrong = served.url.replace(encodeURIComponent(PASSWORD), 'wrong')
    expect(await errorOf(login(wrong))).toEqual({
      severity: 'FATAL',
      code: '28P01',
      message: 'password authentication failed for user "postgres"',
      hint: expect.stringContaining('check the password'),
    })
  })

  it('says no more to a user who is not there', async () => {
    const nobody = served.url.replace('//postgres', '//nobody')
    expect(await errorOf(login(nobody))).toMatchObject({
      code: '28P01',
      message: 'password authentication failed for user "nobody"',
    })
  })

  it('says which database is not there, to who knows a password', async () => {
    const url = served.url.replace('/app', '/ap')
    expect(await errorOf(login(url))).toEqual({
      severity: 'FATAL',
      code: '3D000',
      message: 'database "ap" does not exist',
      hint: expect.stringContaining('SHOW DATABASES'),
    })
    const wrong = url.replace(encodeURIComponent(PASSWORD), 'wrong')
    expect(await errorOf(login(wrong))).toMatchObject({ code: '28P01' })
  })

  it('warns of a wrong password for a server, and tells clients', async () => {
    const { port } = postgres().servers[0]!
    const stranger = await startServe({
      shards: shards(),
      password: 'what clients know',
      user: ['server_password = "wrong"'],
    })
    const reason = 'password authentication failed for user "postgres"'
    const said = logLines(stranger.program, /WARN/)
    expect(said.filter((line) => line.includes(reason))).toHaveLength(1)
    const failure = await errorOf(login(stranger.url))
    expect(failure.message).toContain(`at 127.0.0.1:${port}`)
    expect(failure.message).toContain(reason)
    expect(failure.hint).toMatch(/server_password/)
    expect(failure.code).not.toBe('28P01') // it is not the client's password that is wrong
    await waitFor(() => logLines(stranger.program, /login refused/).length > 0)
    expectNoTrace(stranger.program.stderr)
  })
})

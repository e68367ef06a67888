/** The order of a start: a fault ends it before the next step, and the signals of one that runs. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { startCli } from '../support/run-cli.js'
import { startServe, writeServeConfig } from '../support/serve.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'
import { WireClient } from '../support/wire-client.js'

describe('the start of serve', () => {
  const postgres = usePostgres({ version: 15 })
  const shards = () => {
    const { host, port } = postgres().servers[0]!
    return [{ host, port, database: postgres().database }]
  }
  const sessions = async () =>
    (
      await postgres().query(
        `select count(*)::int as n from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
      )
    )[0]?.['n']

  test('D16: files first, certificates among them, then the port, then servers: a fault ends it there', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    const faults = [
      { line: 'default_pool_size = "many"', code: 3, says: /default_pool_size/ },
      {
        line: 'tls_certificate = "/nowhere.crt"\ntls_private_key = "/nowhere.key"',
        code: 3,
        says: /nowhere\.crt/,
      },
      { line: `port = ${port}`, code: 4, says: /the address is in use/ },
    ]
    for (const [at, fault] of faults.entries()) {
      const { configPath, usersPath } = writeServeConfig({ shards: shards() })
      const text = readFileSync(configPath, 'utf8').replace(/^port = 0$/m, '')
      const lines = faults.slice(at).map(({ line }) => line)
      writeFileSync(configPath, text.replace('[general]', `[general]\n${lines.join('\n')}`))
      const program = startCli(['serve', '--config', configPath, '--users', usersPath])
      const { code, stderr, stdout } = await program.ended
      expect(stderr).toMatch(fault.says)
      expect(code).toBe(fault.code)
      if (at < 2) expect(stderr).not.toMatch(/in use/)
      expect(stdout + stderr).not.toMatch(/listening on/)
      expect(await sessions()).toBe(0)
    }
    await new Promise((resolve) => taken.close(resolve))
  })

  test('D18: SIGHUP reloads and clients are still taken; SIGINT and SIGTERM end it with 0', async () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const served = await startServe({ shards: shards() })
      const before = await WireClient.open(served)
      served.program.signal('SIGHUP')
      await served.program.waitForOutput(/configuration reloaded/)
      const after = await WireClient.open(served)
      for (const client of [before, after]) expect(await client.rows('select 1')).toEqual([['1']])
      served.program.signal(signal)
      expect((await served.program.ended).code).toBe(0)
      await waitFor(async () => (await sessions()) === 0)
    }
  })

  test('D22: RUST_LOG sets what is logged', async () => {
    const lengths: number[] = []
    for (const level of ['error', 'info', 'trace']) {
      const { configPath, usersPath } = writeServeConfig({ shards: shards() })
      const program = startCli(['serve', '--config', configPath, '--users', usersPath], {
        env: { RUST_LOG: level },
      })
      const [, port] = await program.waitForOutput(/listening on \S+:(\d+)/)
      const stranger = WireClient.open({ port: Number(port), database: 'nowhere' })
      await expect(stranger).rejects.toThrow(/nowhere/)
      program.signal('SIGTERM')
      const { stdout, stderr } = await program.ended
      lengths.push(
        (stdout + stderr).split('\n').filter((line) => /login refused/.test(line)).length,
      )
    }
    expect(lengths).toEqual([0, 1, 1])
  })

  test('--trace shows every message of a client, and changes none', async () => {
    const served = await startServe({
      shards: shards(),
      general: ['default_pool_size = 1'],
      args: ['--trace'],
    })
    // The third must hear a SET of ours before its answer, in one read with it.
    for (const name of ['one', 'two', 'one']) {
      const client = new pg.Client({ connectionString: served.url, application_name: name })
      await client.connect()
      expect((await client.query('select 41 + 1 as n')).rows).toEqual([{ n: 42 }])
      await client.end()
    }
    served.program.signal('SIGTERM')
    const { stderr } = await served.program.ended
    const shown = stderr.split('\n').flatMap((line) => {
      const [, side, , message] = line.split('\t')
      return side && /^(Query|RowDescription|DataRow|CommandComplete)$/.test(message ?? '')
        ? [`${side} ${message}`]
        : []
    })
    const one = ['F Query', 'B RowDescription', 'B DataRow', 'B CommandComplete']
    expect(shown).toEqual([...one, ...one, ...one])
  })
})

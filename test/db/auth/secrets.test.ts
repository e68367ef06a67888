/** No password, token, key or verifier is in any log, error, trace or answer of the console. */

import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseScramVerifier, scramKeysSync } from '../../../src/auth/scram-verifier.js'
import { runCli } from '../../support/run-cli.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { databaseOf, psql, type RunningServe, setHba, startProxy } from './rig.js'

const secrets = {
  admin: 'Adm1n-console-secret',
  pass: 'S3cret-of-guests',
  wrong: 'Wr0ng-password-typed',
  vault: 'V4ult-made-password',
  vaultToken: 'hvs.V4ult-token',
  roleSecret: 'Appr0le-secret-id',
} as const

describe.skipIf(isMissing('psql'))('secrets', () => {
  const postgres = usePostgres({ version: 15, password: 'Superus3r-password' })
  let vault: Server
  const requests: string[] = []
  let proxy: RunningServe
  let isVaultUp = true

  beforeAll(async () => {
    vault = createServer((request, response) => {
      requests.push(`${request.method} ${request.url}`)
      response.statusCode = isVaultUp ? 200 : 503
      response.end(
        JSON.stringify(
          request.url?.endsWith('/login')
            ? { auth: { client_token: secrets.vaultToken } }
            : { lease_duration: 3600, data: { username: 'v_app', password: secrets.vault } },
        ),
      )
    })
    await new Promise<void>((resolve) => vault.listen(0, '127.0.0.1', resolve))
    const address = vault.address()
    const port = typeof address === 'object' ? address?.port : 0
    const client = await postgres().connect()
    await client.query(`
      create role v_app login password '${secrets.vault}';
      create role guest login password '${secrets.pass}';
      create role plain_one login password '${secrets.pass}';
      create role asker superuser login password '${secrets.pass}';
      set password_encryption = 'md5';
      create role old_guest login password '${secrets.pass}';
    `)
    await client.end()
    await setHba(postgres(), ['host all old_guest all md5'])
    proxy = await startProxy(
      {
        general: ['log_level = "trace"', 'checkout_timeout = 1500'],
        toml: `[admin]
password = "${secrets.admin}"
[vault]
url = "http://127.0.0.1:${port}"
auth_method = "approle"
approle_role_id = "role"
${databaseOf(postgres())}${databaseOf(postgres(), 'second')}`,
        users: `
[[users]]
name = "app"
database = "app"
password = "${secrets.pass}"
server_auth = "vault_dynamic"
server_vault_path = "database/creds/app"
[[users]]
name = "asker"
database = "app"
password = "${secrets.pass}"
auth_query = "SELECT usename, passwd FROM pg_shadow WHERE usename=$1"
[[users]]
name = "plain_one"
database = "app"
auth_type = "plain"
password = "${secrets.pass}"
[[users]]
name = "locked_out"
database = "second"
password = "${secrets.pass}"
server_password = "${secrets.wrong}"
`,
      },
      ['--trace', '--log-level', 'trace'],
      { VAULT_SECRET_ID: secrets.roleSecret },
    )
  })
  afterAll(() => {
    vault.closeAllConnections()
    vault.close()
  })

  const ask = (user: string, password: string, sql = 'select session_user', database = 'app') =>
    psql(
      `host=127.0.0.1 port=${proxy.port} user=${user} dbname=${database} password='${password}'`,
      sql,
    )

  test('D29: a login that Vault gives out opens the servers, and is asked for once', async () => {
    expect(ask('app', secrets.pass)).toEqual({ code: 0, stdout: 'v_app', stderr: '' })
    expect(requests).toContain('GET /v1/database/creds/app')
    const before = requests.length
    expect(ask('app', secrets.pass, 'select 1').code).toBe(0)
    expect(requests.length).toBe(before)
  })

  test('are nowhere in what serve writes, answers and shows', async () => {
    const verifiers = await postgres().query(
      "select rolpassword as v from pg_authid where rolname in ('guest', 'old_guest', 'asker')",
    )
    const answers: string[] = []
    const note = (ran: { stdout: string; stderr: string }) => answers.push(ran.stdout, ran.stderr)
    for (const user of ['app', 'asker', 'plain_one', 'guest', 'old_guest', 'nobody']) {
      note(ask(user, secrets.pass))
      note(ask(user, secrets.wrong))
    }
    // The server refuses the proxy, and says so.
    note(ask('locked_out', secrets.pass, 'select 1', 'second'))
    const client = new pg.Client({
      host: '127.0.0.1',
      port: proxy.port,
      user: 'guest',
      database: 'app',
      password: secrets.pass,
    })
    await client.connect()
    client.on('error', () => undefined)
    await postgres().query(
      "select pg_terminate_backend(pid) from pg_stat_activity where usename in ('guest', 'v_app')",
    )
    answers.push(String(await client.query('select 1').catch((error: unknown) => error)))
    await client.end().catch(() => undefined)
    isVaultUp = false
    proxy.program.signal('SIGHUP')
    await proxy.program.waitForOutput(/configuration reloaded/)
    note(ask('admin', secrets.admin, 'RECONNECT', 'pgshard'))
    note(ask('app', secrets.pass))
    note(ask('admin', secrets.wrong, 'SHOW POOLS', 'pgshard'))
    for (const table of ['CLIENTS', 'POOLS', 'SERVERS', 'USERS', 'DATABASES', 'CONFIG', 'STATS']) {
      const shown = ask('admin', secrets.admin, `SHOW ${table}`, 'pgshard')
      expect(shown.code, table).toBe(0)
      note(shown)
    }
    const { configPath, usersPath } = proxy
    for (const how of [[], ['--json']]) {
      const shown = await runCli(['config', 'show', '-c', configPath, '-u', usersPath, ...how])
      expect(shown.code).toBe(0)
      note(shown)
    }
    const ended = await proxy.program.stop()
    const all = [...answers, ended.stdout, ended.stderr].join('\n')
    expect(all).toContain('AuthenticationSASLContinue')
    expect(all).toContain('no credentials from Vault')
    const hidden: Record<string, string> = { ...secrets, superuser: 'Superus3r-password' }
    for (const [n, { v }] of verifiers.entries()) {
      const text = String(v)
      const parsed = parseScramVerifier(text)
      if (!parsed) {
        hidden[`md5 ${n}`] = text.slice(3)
        continue
      }
      const keys = scramKeysSync(secrets.pass, parsed.salt, parsed.iterations)
      for (const [name, bytes] of Object.entries({ ...keys, salt: parsed.salt })) {
        hidden[`${name} ${n}`] = bytes.toString('base64')
        hidden[`${name} ${n} in hex`] = bytes.toString('hex')
      }
    }
    const found = Object.entries(hidden).filter(([, text]) => all.includes(text))
    expect(found.map(([name]) => name)).toEqual([])
    // The test itself can see a secret: the files have them.
    expect(readFileSync(join(proxy.directory, 'users.toml'), 'utf8')).toContain(secrets.pass)
  })
})

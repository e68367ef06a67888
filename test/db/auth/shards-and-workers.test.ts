/** Users of the servers over several shards and in several processes; and logins by Unix socket. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { makeCertificates } from '../../support/certificates.js'
import { testSize } from '../../support/test-size.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { psql, setHba, startProxy } from './rig.js'

const PASSWORD = 'many doors'

describe.skipIf(isMissing('psql') || isMissing('openssl'))('logins elsewhere', () => {
  const postgres = usePostgres({ version: 15, count: 1, password: PASSWORD })
  let second: string

  beforeAll(async () => {
    second = await postgres().createDatabase()
    await postgres().query(`create role alice superuser login password '${PASSWORD}'`)
    await postgres().query(`create role loose login password '${PASSWORD}'`)
    await setHba(postgres(), [])
    for (const database of [postgres().database, second]) {
      const client = await postgres().connect(0, database)
      await client.query('create table item (id bigint primary key, name text)')
      await client.end()
    }
  })

  const shards = () => {
    const databases = [postgres().database, second].map(
      (database, shard) => `[[databases]]
name = "app"
host = "127.0.0.1"
port = ${postgres().servers[0]!.port}
database_name = "${database}"
shard = ${shard}
`,
    )
    return `${databases.join('\n')}
[[sharded_tables]]
database = "app"
name = "item"
column = "id"
`
  }

  test('D42: pass-through over two shards, where no user is configured', async () => {
    const proxy = await startProxy({
      general: ['passthrough_auth = "enabled_plain"'],
      toml: shards(),
      users: '',
    })
    const conninfo = `host=127.0.0.1 port=${proxy.port} user=alice dbname=app password='${PASSWORD}'`
    for (const id of [1, 2, 3, 4]) {
      expect(psql(conninfo, `insert into item values (${id}, 'x')`).stdout).toBe('INSERT 0 1')
    }
    const all = psql(conninfo, 'select id from item')
    await proxy.program.stop()
    expect(all.stdout.split('\n').sort()).toEqual(['1', '2', '3', '4'])
    const there = await postgres().query('select count(*)::int as n from item')
    expect(there[0]?.['n']).toBeGreaterThan(0)
    expect(there[0]?.['n']).toBeLessThan(4)
  })

  test.skipIf(testSize === 'quick')(
    'D41, D42: two workers with TLS, auth_query and channel binding',
    async () => {
      const pair = makeCertificates().make({ name: 'localhost' })
      const proxy = await startProxy(
        {
          general: [
            `tls_certificate = "${pair.certPath}"`,
            `tls_private_key = "${pair.keyPath}"`,
            'workers_mode = "processes"',
          ],
          toml: shards(),
          users: `[[users]]\nname = "postgres"\ndatabase = "app"\npassword = "${PASSWORD}"\nauth_query = "select usename, passwd from pg_shadow where usename = $1"\n`,
        },
        ['--workers', '2'],
      )
      const ask = (user: string, password: string) =>
        psql(
          `host=127.0.0.1 port=${proxy.port} user=${user} dbname=app password='${password}' sslmode=require channel_binding=require`,
          'select session_user',
        )
      for (let n = 0; n < 4; n++) {
        expect(ask('alice', PASSWORD)).toEqual({ code: 0, stdout: 'alice', stderr: '' })
        expect(ask('alice', 'wrong').stderr).toContain('password authentication failed')
        expect(ask('stranger', PASSWORD).stderr).toContain('password authentication failed')
      }
      await proxy.program.stop()
    },
  )

  test('D41: a Unix socket is local: its own rules, no TLS, and none needed', async () => {
    const directory = mkdtempSync(join(inject('runDirectory'), 's-'))
    const pair = makeCertificates().make({ name: 'localhost' })
    const proxy = await startProxy({
      general: [
        `tls_certificate = "${pair.certPath}"`,
        `tls_private_key = "${pair.keyPath}"`,
        'tls_client_required = true',
        `unix_socket_dir = "${directory}"`,
        'hba = ["local all loose trust", "local all all scram-sha-256", "hostssl all alice all scram-sha-256"]',
      ],
      toml: shards(),
      users: ['alice', 'loose']
        .map((name) => `[[users]]\nname = "${name}"\ndatabase = "app"\npassword = "${PASSWORD}"\n`)
        .join('\n'),
    })
    const at = (host: string, user: string, password: string) =>
      psql(
        `host=${host} port=${proxy.port} user=${user} dbname=app password='${password}'`,
        'select session_user',
      )
    expect(at(directory, 'loose', '')).toEqual({ code: 0, stdout: 'loose', stderr: '' })
    expect(at(directory, 'alice', PASSWORD)).toEqual({ code: 0, stdout: 'alice', stderr: '' })
    expect(at(directory, 'alice', 'wrong').stderr).toContain('password authentication failed')
    expect(at('127.0.0.1', 'alice', PASSWORD).stdout).toBe('alice')
    expect(at('127.0.0.1', 'loose', PASSWORD).stderr).toContain('no pg_hba.conf entry for host')
    await proxy.program.stop()
  })
})

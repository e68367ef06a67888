/** Users that users.toml does not know: auth_query and pass-through; rules by address, and certificates as identity. */
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { type CertificateMaker, makeCertificates } from '../../support/certificates.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { databaseOf, psql, type RunningServe, setHba, startProxy } from './rig.js'

const PASSWORD = 'guest pass'

describe.skipIf(isMissing('psql') || isMissing('openssl'))('users of the servers', () => {
  const postgres = usePostgres({ version: 15, password: PASSWORD })
  let certificates: CertificateMaker
  let tls: string[]
  const asker = `[[users]]
name = "asker"
database = "app"
password = "${PASSWORD}"
auth_query = "SELECT usename, passwd FROM lookup.passwords($1)"
`

  beforeAll(async () => {
    certificates = makeCertificates()
    const pair = certificates.make({ name: 'localhost', alternatives: 'DNS:localhost' })
    tls = [`tls_certificate = "${pair.certPath}"`, `tls_private_key = "${pair.keyPath}"`]
    const client = await postgres().connect()
    await client.query(`
      create role asker login password '${PASSWORD}';
      create role alice login password '${PASSWORD}';
      create role "Bob O'Brien" login password '${PASSWORD}';
      create role loose login;
      set password_encryption = 'md5';
      create role old_md5 login password '${PASSWORD}';
      create schema lookup;
      create function lookup.passwords(text, out usename text, out passwd text) returns setof record
        language sql security definer set search_path = pg_catalog
        as 'select rolname::text, rolpassword from pg_authid where rolname = $1 and rolcanlogin';
      grant usage on schema lookup to asker;
    `)
    await client.end()
    await setHba(postgres(), ['host all old_md5 all md5', 'host all loose all trust'])
  })

  const toml = () => `[admin]\npassword = "console"\n${databaseOf(postgres())}`
  const conninfo = (proxy: RunningServe, user: string, password: string, more = '') =>
    `host=127.0.0.1 port=${proxy.port} user='${user.replaceAll("'", "\\'")}' dbname=app password='${password}' ${more}`
  const poolUsers = (proxy: RunningServe) => {
    const shown = psql(
      `host=127.0.0.1 port=${proxy.port} user=admin dbname=pgshard password=console`,
      'SHOW POOLS',
    )
    return shown.stdout.split('\n')
  }

  describe('auth_query', () => {
    let proxy: RunningServe
    beforeAll(async () => {
      proxy = await startProxy({ general: ['auth_query_ttl = 60000'], toml: toml(), users: asker })
    })

    test.each(['alice', "Bob O'Brien", 'old_md5'])(
      'lets %s in by what the server keeps, and into the server by the same',
      (user) => {
        const ran = psql(conninfo(proxy, user, PASSWORD), 'select session_user')
        expect(ran).toEqual({ code: 0, stdout: user, stderr: '' })
      },
    )

    test('D43: a wrong password, and a user that nobody knows, are refused alike', () => {
      for (const [user, password] of [
        ['alice', 'wrong'],
        ['stranger', PASSWORD],
        ['loose', ''],
      ]) {
        const ran = psql(conninfo(proxy, user!, password!), 'select 1')
        expect(ran.stderr).toMatch(/password authentication failed|no password supplied/)
        expect(ran.code).toBe(2)
      }
    })

    test('a changed password counts at the second try, before the time to live is over', async () => {
      psql(conninfo(proxy, 'alice', PASSWORD), 'select 1')
      await postgres().query("alter role alice password 'changed'")
      const first = psql(conninfo(proxy, 'alice', 'changed'), 'select 1')
      const second = psql(conninfo(proxy, 'alice', 'changed'), 'select session_user')
      await postgres().query(`alter role alice password '${PASSWORD}'`)
      psql(conninfo(proxy, 'alice', PASSWORD), 'select 1')
      expect(first.code).toBe(2)
      expect(second).toEqual({ code: 0, stdout: 'alice', stderr: '' })
    })

    test('the query runs apart from pools: a search_path left there changes nothing', async () => {
      const client = new pg.Client({
        host: '127.0.0.1',
        port: proxy.port,
        user: 'asker',
        database: 'app',
        password: PASSWORD,
      })
      await client.connect()
      await client.query('set search_path = nowhere')
      expect(psql(conninfo(proxy, 'old_md5', PASSWORD), 'select 1').code).toBe(0)
      await client.end()
    })

    test('an unknown user takes as long as a wrong password', async () => {
      const attempt = async (user: string) => {
        const startedAt = performance.now()
        const client = new pg.Client({
          host: '127.0.0.1',
          port: proxy.port,
          user,
          database: 'app',
          password: 'wrong',
        })
        await client.connect().catch(() => undefined)
        return performance.now() - startedAt
      }
      const times = { known: [] as number[], unknown: [] as number[] }
      for (let n = 0; n < 30; n++) {
        times.known.push(await attempt('alice'))
        times.unknown.push(await attempt('stranger'))
      }
      const median = (values: number[]) => values.sort((a, b) => a - b)[15]!
      const ratio = median(times.known) / median(times.unknown)
      expect(ratio).toBeGreaterThan(0.5)
      expect(ratio).toBeLessThan(2)
    })

    test('a server that cannot be asked refuses, and says why in the log only', async () => {
      await postgres().query('revoke usage on schema lookup from asker')
      const ran = psql(conninfo(proxy, 'someone', PASSWORD), 'select 1')
      await postgres().query('grant usage on schema lookup to asker')
      expect(ran.stderr).toContain('the password of user "someone" could not be looked up')
      expect(ran.stderr).not.toContain('permission denied')
      await proxy.program.waitForOutput(/auth_query failed.*permission denied for schema lookup/)
    })
  })

  describe('pass-through', () => {
    let proxy: RunningServe
    beforeAll(async () => {
      proxy = await startProxy({
        general: [...tls, 'passthrough_auth = "enabled"', 'idle_timeout = 300'],
        toml: toml(),
        users: '',
      })
    })

    test('D42: an unknown user logs in with its PostgreSQL password, in a pool that goes when nobody uses it', async () => {
      const ran = psql(conninfo(proxy, 'alice', PASSWORD, 'sslmode=require'), 'select session_user')
      expect(ran).toEqual({ code: 0, stdout: 'alice', stderr: '' })
      const again = psql(conninfo(proxy, 'alice', PASSWORD, 'sslmode=require'), 'select 1')
      expect(again.code).toBe(0)
      expect(poolUsers(proxy).some((line) => line.includes('|alice|'))).toBe(true)
      await waitFor(() => !poolUsers(proxy).some((line) => line.includes('|alice|')))
      const back = psql(conninfo(proxy, 'alice', PASSWORD, 'sslmode=require'), 'select 1')
      expect(back.code).toBe(0)
    })

    test("D42: a wrong password is refused with PostgreSQL's own error, first and later", () => {
      for (const wrong of ['wrong', 'wronger']) {
        const ran = psql(conninfo(proxy, 'alice', wrong, 'sslmode=require'), 'select 1')
        expect(ran.stderr).toMatch(/FATAL: {2}password authentication failed for user "alice"$/)
      }
      const unknown = psql(conninfo(proxy, 'stranger', PASSWORD, 'sslmode=require'), 'select 1')
      expect(unknown.stderr).toMatch(
        /FATAL: {2}password authentication failed for user "stranger"$/,
      )
    })

    test('D42: the password is not asked for in clear without TLS', () => {
      const ran = psql(conninfo(proxy, 'alice', PASSWORD, 'sslmode=disable'), 'select 1')
      expect(ran.stderr).toContain('is asked for in clear, which needs TLS')
    })

    test('D42: a server that asks for no password proves nothing, so it lets nobody in', () => {
      const ran = psql(conninfo(proxy, 'loose', 'anything', 'sslmode=require'), 'select 1')
      expect(ran.stderr).toContain('let user "loose" in without asking for the password')
    })

    test('D42: clients of one user with two passwords: the newer one needs allow_change', async () => {
      const client = new pg.Client({
        host: '127.0.0.1',
        port: proxy.port,
        user: 'alice',
        database: 'app',
        password: PASSWORD,
        ssl: { rejectUnauthorized: false },
      })
      await client.connect()
      await postgres().query("alter role alice password 'newer'")
      const newer = psql(conninfo(proxy, 'alice', 'newer', 'sslmode=require'), 'select 1')
      await postgres().query(`alter role alice password '${PASSWORD}'`)
      await client.end()
      expect(newer.stderr).toContain('password authentication failed for user "alice"')
      expect(newer.stderr).toContain('enabled_allow_change')
    })

    test('D42: enabled_plain asks without TLS; a guest stays over a RELOAD', async () => {
      const plain = await startProxy({
        general: ['passthrough_auth = "enabled_plain_allow_change"'],
        toml: toml(),
        users: '[[users]]\nname = "alice"\ndatabase = "app"\n',
      })
      const client = new pg.Client({
        host: '127.0.0.1',
        port: plain.port,
        user: 'alice',
        database: 'app',
        password: PASSWORD,
      })
      await client.connect()
      plain.program.signal('SIGHUP')
      await plain.program.waitForOutput(/configuration reloaded/)
      expect((await client.query('select session_user as me')).rows).toEqual([{ me: 'alice' }])
      await postgres().query("alter role alice password 'newer'")
      const newer = psql(conninfo(plain, 'alice', 'newer'), 'select session_user')
      await postgres().query(`alter role alice password '${PASSWORD}'`)
      await client.end()
      await plain.program.stop()
      expect(newer).toEqual({ code: 0, stdout: 'alice', stderr: '' })
    })
  })

  describe('rules of pg_hba.conf', () => {
    let proxy: RunningServe
    beforeAll(async () => {
      const users = ['alice', 'asker', 'old_md5']
        .map((name) => `[[users]]\nname = "${name}"\ndatabase = "app"\npassword = "${PASSWORD}"\n`)
        .join('\n')
      proxy = await startProxy({
        general: [
          ...tls,
          `hba = [
            "# comment",
            "hostnossl app  asker      127.0.0.0/8  reject",
            "hostssl   app  asker      samehost     scram-sha-256",
            "host      app  old_md5    127.0.0.1 255.255.255.255  md5",
            "host      sameuser  alice  all         trust",
            "hostssl   all  alice      10.0.0.0/8   trust",
            "host      app  alice      ::/0         trust",
            "host      app  alice      127.0.0.1/32 password",
          ]`,
        ],
        toml: toml(),
        users,
      })
    })

    test('the first rule that fits decides on the method', () => {
      const plain = psql(conninfo(proxy, 'alice', PASSWORD, 'sslmode=disable'), 'select 1')
      const wrong = psql(conninfo(proxy, 'alice', 'wrong', 'sslmode=disable'), 'select 1')
      const md5 = psql(conninfo(proxy, 'old_md5', PASSWORD), 'select 1')
      const encrypted = psql(conninfo(proxy, 'asker', PASSWORD, 'sslmode=require'), 'select 1')
      expect([plain.code, md5.code, encrypted.code]).toEqual([0, 0, 0])
      expect(wrong.stderr).toContain('password authentication failed for user "alice"')
    })

    test("D43: reject and no entry are PostgreSQL's own messages, 28000", async () => {
      const rejected = psql(conninfo(proxy, 'asker', PASSWORD, 'sslmode=disable'), 'select 1')
      const missing = psql(conninfo(proxy, 'stranger', PASSWORD, 'sslmode=require'), 'select 1')
      expect(rejected.stderr).toContain(
        'FATAL:  pg_hba.conf rejects connection for host "127.0.0.1", user "asker", database "app", no encryption',
      )
      expect(missing.stderr).toContain(
        'FATAL:  no pg_hba.conf entry for host "127.0.0.1", user "stranger", database "app", SSL encryption',
      )
      const client = new pg.Client({
        host: '127.0.0.1',
        port: proxy.port,
        user: 'nobody',
        database: 'app',
      })
      await expect(client.connect()).rejects.toMatchObject({ code: '28000' })
    })
  })

  describe('client certificates', () => {
    let proxy: RunningServe
    let own: (name: string, subject?: string, alternatives?: string) => string
    beforeAll(async () => {
      own = (name, subject = `/CN=${name}`, alternatives) => {
        const pair = certificates.make({ name, subject, ...(alternatives ? { alternatives } : {}) })
        return `sslmode=require sslcert=${pair.certPath} sslkey=${pair.keyPath}`
      }
      proxy = await startProxy({
        general: [...tls, `tls_client_ca_certificate = "${certificates.caPath}"`],
        toml: toml(),
        users: `
[[users]]
name = "alice"
database = "app"
identity = "alice.example"
server_password = "${PASSWORD}"
[[users]]
name = "old_md5"
database = "app"
identity = "spiffe://example/robot"
server_password = "${PASSWORD}"
[[users]]
name = "asker"
database = "app"
password = "${PASSWORD}"
[[users]]
name = "loose"
database = "app"
password = "${PASSWORD}"
tls_client_certificate_required = false
`,
      })
    })

    test('a certificate with the name of identity lets its user in without a password, by CN or URI', () => {
      const byName = psql(conninfo(proxy, 'alice', '', own('alice.example')), 'select session_user')
      const byUri = psql(
        conninfo(proxy, 'old_md5', '', own('robot', '/CN=robot', 'URI:spiffe://example/robot')),
        'select session_user',
      )
      expect(byName).toEqual({ code: 0, stdout: 'alice', stderr: '' })
      expect(byUri).toEqual({ code: 0, stdout: 'old_md5', stderr: '' })
    })

    test("another's certificate, one of another authority, and none do not", () => {
      const others = psql(conninfo(proxy, 'alice', PASSWORD, own('mallory')), 'select 1')
      expect(others.stderr).toContain('certificate authentication failed for user "alice"')
      const none = psql(
        conninfo(proxy, 'alice', PASSWORD, 'sslmode=require sslcert=/nowhere sslkey=/nowhere'),
        'select 1',
      )
      expect(none.stderr).toContain('connection requires a valid client certificate')
      const plain = psql(conninfo(proxy, 'alice', PASSWORD, 'sslmode=disable'), 'select 1')
      expect(plain.stderr).toContain('connection requires a valid client certificate')
      const forged = makeCertificates().make({ name: 'alice.example' })
      const foreign = psql(
        conninfo(
          proxy,
          'alice',
          PASSWORD,
          `sslmode=require sslcert=${forged.certPath} sslkey=${forged.keyPath}`,
        ),
        'select 1',
      )
      expect(foreign.code).toBe(2)
      expect(foreign.stdout).toBe('')
    })

    test('beside the password a certificate is needed where it is required', () => {
      const both = psql(conninfo(proxy, 'asker', PASSWORD, own('anyone')), 'select 1')
      const wrong = psql(conninfo(proxy, 'asker', 'wrong', own('anyone2')), 'select 1')
      const alone = psql(conninfo(proxy, 'asker', PASSWORD, 'sslmode=require'), 'select 1')
      const waived = psql(conninfo(proxy, 'loose', PASSWORD, 'sslmode=require'), 'select 1')
      expect(both.code).toBe(0)
      expect(wrong.stderr).toContain('password authentication failed')
      expect(alone.stderr).toContain('connection requires a valid client certificate')
      expect(waived.code).toBe(0)
    })

    test('method cert and clientcert of a rule ask for the name of the user', async () => {
      const ruled = await startProxy({
        general: [
          ...tls,
          `tls_client_ca_certificate = "${certificates.caPath}"`,
          `hba = ["hostssl all alice all cert", "hostssl all asker all scram-sha-256 clientcert=verify-full", "hostssl all loose all trust clientcert=verify-ca"]`,
        ],
        toml: toml(),
        users: ['alice', 'asker', 'loose']
          .map(
            (name) =>
              `[[users]]\nname = "${name}"\ndatabase = "app"\npassword = "${PASSWORD}"\ntls_client_certificate_required = false\n`,
          )
          .join('\n'),
      })
      const alice = own('alice')
      const asker = own('asker')
      const ask = (user: string, password: string, more: string) =>
        psql(conninfo(ruled, user, password, more), 'select session_user')
      expect(ask('alice', '', alice).stdout).toBe('alice')
      expect(ask('alice', '', asker).stderr).toContain('certificate authentication failed')
      expect(ask('asker', PASSWORD, asker).stdout).toBe('asker')
      expect(ask('asker', PASSWORD, alice).stderr).toContain('certificate authentication failed')
      expect(ask('loose', '', alice).stdout).toBe('loose')
      expect(ask('loose', '', 'sslmode=require').stderr).toContain('valid client certificate')
      await ruled.program.stop()
    })
  })
})

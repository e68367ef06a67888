/** Towards PostgreSQL 18: direct TLS, channel binding and the options of connection strings that ask for them. */
import { beforeAll, describe, expect, test } from 'vitest'
import { connectPg } from '../../../src/pg/connect.js'
import { openServer } from '../../../src/server/open-server.js'
import type { ServerTarget } from '../../../src/server/server-target.js'
import { type CertificateMaker, makeCertificates, pem } from '../../support/certificates.js'
import { runCli } from '../../support/run-cli.js'
import { testSize } from '../../support/test-size.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { databaseOf, psql, setHba, startProxy, writeServerFile } from './rig.js'

const PASSWORD = 'direct secret'

describe.skipIf(isMissing('openssl'))('direct TLS and channel binding', () => {
  const postgres = usePostgres({ version: 18, password: PASSWORD })
  let certificates: CertificateMaker

  beforeAll(async () => {
    certificates = makeCertificates('rsa')
    const pair = certificates.make({
      name: 'localhost',
      key: 'rsa',
      hash: 'sha384',
      alternatives: 'DNS:localhost,IP:127.0.0.1',
    })
    const { dataDirectory } = postgres().servers[0]!
    writeServerFile(dataDirectory, 'server.crt', pem(pair.certPath))
    writeServerFile(dataDirectory, 'server.key', pem(pair.keyPath))
    await postgres().query("create role plain_md5 login password 'x'")
    await setHba(postgres(), ['host all plain_md5 all password'])
    await postgres().query("alter system set ssl = 'on'")
    await postgres().query('select pg_reload_conf()')
  })

  const target = (more: Partial<ServerTarget> = {}): ServerTarget => ({
    host: '127.0.0.1',
    port: postgres().servers[0]!.port,
    user: 'postgres',
    database: postgres().database,
    password: PASSWORD,
    channelBinding: 'require',
    tls: {
      mode: 'require',
      negotiation: 'direct',
      options: { host: '127.0.0.1', verify: 'full', ca: pem(certificates.caPath) },
    },
    ...more,
  })
  const conninfo = (more: string, user = 'postgres') =>
    `host=127.0.0.1 port=${postgres().servers[0]!.port} user=${user} dbname=${postgres().database} password='${PASSWORD}' sslrootcert=${certificates.caPath} ${more}`

  test('D46: our own driver begins with TLS at once and binds', async () => {
    const server = await openServer(target())
    const [result] = await server.query(
      'select ssl, version from pg_stat_ssl where pid = pg_backend_pid()',
    )
    server.close()
    expect(result?.rows).toEqual([['t', 'TLSv1.3']])
  })

  test('D46: where binding is required nothing goes to a server that does not bind', async () => {
    const plain = target()
    const { tls: _, ...unencrypted } = plain
    await expect(openServer(unencrypted)).rejects.toMatchObject({ code: 'AUTH_BINDING_REQUIRED' })
    await expect(openServer(target({ user: 'plain_md5', password: 'x' }))).rejects.toMatchObject({
      code: 'AUTH_BINDING_REQUIRED',
    })
    const unbound = await openServer(target({ channelBinding: 'disable' }))
    unbound.close()
  })

  test('D31: serve reaches its servers by direct TLS', async () => {
    const proxy = await startProxy({
      general: [
        'tls_verify = "verify_full"',
        'tls_server_negotiation = "direct"',
        'tls_server_channel_binding = "require"',
        `tls_server_ca_certificate = "${certificates.caPath}"`,
      ],
      toml: databaseOf(postgres()),
      users: `[[users]]\nname = "postgres"\ndatabase = "app"\npassword = "${PASSWORD}"\n`,
    })
    const ran = psql(
      `host=127.0.0.1 port=${proxy.port} user=postgres dbname=app password='${PASSWORD}'`,
      'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
    )
    await proxy.program.stop()
    expect(ran).toEqual({ code: 0, stdout: 't', stderr: '' })
  })

  test('connection strings: sslnegotiation and channel_binding, with pg', async () => {
    const client = await connectPg(
      conninfo('sslmode=verify-full sslnegotiation=direct channel_binding=require'),
    )
    const { rows } = await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
    await client.end()
    expect(rows).toEqual([{ ssl: true }])
    for (const refused of [
      conninfo('sslmode=disable channel_binding=require'),
      conninfo('sslmode=require channel_binding=require', 'plain_md5'),
    ]) {
      await expect(connectPg(refused)).rejects.toThrow(/channel binding is required/)
    }
    await expect(connectPg(conninfo('sslmode=prefer sslnegotiation=direct'))).rejects.toThrow(
      'weak sslmode "prefer" may not be used with sslnegotiation=direct',
    )
  })

  test.skipIf(testSize === 'quick')(
    'connection strings: the same with the driver of bench',
    async () => {
      const bench = (more: string) =>
        runCli(['bench', '-n', '-S', '-c', '1', '-t', '1', conninfo(more)], { timeoutMs: 60_000 })
      await runCli(['bench', 'init', '-s', '1', conninfo('sslmode=require')], { timeoutMs: 60_000 })
      const bound = await bench('sslmode=verify-full sslnegotiation=direct channel_binding=require')
      const refused = await bench('sslmode=disable channel_binding=require')
      expect(bound.stderr).not.toContain('channel binding')
      expect(bound.stdout).toContain('number of transactions actually processed: 1/1')
      expect(refused.code).not.toBe(0)
      expect(refused.stderr).toContain('channel binding is required')
    },
  )
})

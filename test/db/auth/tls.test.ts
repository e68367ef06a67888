/** TLS on both sides: how it begins, what it refuses, what a RELOAD changes, and channel binding over it. */
import { writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { connect as connectTls } from 'node:tls'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { type CertificateMaker, makeCertificates, pem } from '../../support/certificates.js'
import { runCli } from '../../support/run-cli.js'
import { bySize } from '../../support/test-size.js'
import { isFileMissing, isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import {
  CANCEL_REQUEST_CODE,
  databaseOf,
  libpq18,
  psql,
  RawClient,
  type RunningServe,
  SSL_REQUEST,
  startProxy,
  startupPacket,
  untagged,
  writeProxyFiles,
  writeServerFile,
} from './rig.js'

const PASSWORD = 'pässword with  spaces'
const noPsql = isMissing('psql') || isMissing('openssl')
const noLibpq18 = isFileMissing(libpq18)

describe.skipIf(noPsql)('TLS', () => {
  const postgres = usePostgres({ version: 15, password: PASSWORD })
  let certificates: CertificateMaker
  let proxy: RunningServe
  let server: { certPath: string; keyPath: string }
  let base: { general: string[]; toml: string; users: string }

  beforeAll(async () => {
    certificates = makeCertificates()
    server = certificates.make({ name: 'localhost', alternatives: 'DNS:localhost,IP:127.0.0.1' })
    const { dataDirectory } = postgres().servers[0]!
    writeServerFile(dataDirectory, 'server.crt', pem(server.certPath))
    writeServerFile(dataDirectory, 'server.key', pem(server.keyPath))
    await postgres().query("alter system set ssl = 'on'")
    await postgres().query('select pg_reload_conf()')
    base = {
      general: [
        `tls_certificate = "${server.certPath}"`,
        `tls_private_key = "${server.keyPath}"`,
        `tls_server_ca_certificate = "${certificates.caPath}"`,
        'tls_verify = "verify_full"',
        'tls_server_channel_binding = "require"',
      ],
      toml: `[admin]\npassword = "console"\n${databaseOf(postgres())}`,
      users: `[[users]]\nname = "postgres"\ndatabase = "app"\npassword = "${PASSWORD}"\n`,
    }
    proxy = await startProxy(base)
  })

  const clientOf = (more: pg.ClientConfig = {}) =>
    new pg.Client({
      host: '127.0.0.1',
      port: proxy.port,
      user: 'postgres',
      database: 'app',
      password: PASSWORD,
      ...more,
    })

  const conninfo = (more: string, database = 'app', user = 'postgres') =>
    `host=localhost hostaddr=127.0.0.1 port=${proxy.port} user=${user} dbname=${database} password='${PASSWORD}' ${more}`

  test.each([
    'sslmode=disable',
    'sslmode=allow',
    'sslmode=prefer',
    'sslmode=require channel_binding=require',
    'sslmode=require channel_binding=disable',
    'sslmode=verify-ca sslrootcert=CA',
    'sslmode=verify-full sslrootcert=CA',
  ])('D31, D34: the same client gets in with %s', (mode) => {
    const ran = psql(
      conninfo(mode.replace('CA', certificates.caPath)),
      'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
    )
    // Towards the server it is TLS with a binding, whatever the client does.
    expect(ran).toEqual({ code: 0, stdout: 't', stderr: '' })
  })

  test('D34: SHOW CLIENTS says who uses TLS', async () => {
    const client = clientOf({
      ssl: { ca: pem(certificates.caPath), servername: 'localhost' },
    })
    await client.connect()
    const shown = psql(
      `host=127.0.0.1 port=${proxy.port} user=admin dbname=pgshard password=console sslmode=disable`,
      'SHOW CLIENTS',
    )
    await client.end()
    const row = shown.stdout.split('\n').find((line) => line.includes('|app|'))
    expect(shown.stderr).toBe('')
    expect(row?.split('|')).toContain('TLS')
  })

  test('D31: psql verify-full refuses a name that is not in the certificate', () => {
    const other = conninfo(`sslmode=verify-full sslrootcert=${certificates.caPath}`).replace(
      'host=localhost',
      'host=elsewhere',
    )
    expect(psql(other, 'select 1').stderr).toContain('does not match host name "elsewhere"')
  })

  test('D41: node-postgres binds the channel when it is asked to', async () => {
    const client = clientOf({
      ssl: { ca: pem(certificates.caPath), servername: 'localhost' },
      enableChannelBinding: true,
    } as pg.ClientConfig)
    const mechanisms: string[] = []
    const { connection } = client as unknown as {
      connection: { sendSASLInitialResponseMessage(mechanism: string, response: string): void }
    }
    const send = connection.sendSASLInitialResponseMessage.bind(connection)
    connection.sendSASLInitialResponseMessage = (mechanism, response) => {
      mechanisms.push(mechanism)
      send(mechanism, response)
    }
    await client.connect()
    const { rows } = await client.query('select 1 as one')
    await client.end()
    expect(rows).toEqual([{ one: 1 }])
    expect(mechanisms).toEqual(['SCRAM-SHA-256-PLUS'])
  })

  const kinds = [
    ['rsa', 'rsa', 'sha512'],
    ['rsa', 'rsa', 'sha256'],
    ['ec', 'ec', 'sha384'],
  ] as const
  test.each(bySize<readonly (typeof kinds)[number][]>(kinds.slice(0, 1), kinds))(
    'D41: channel binding fits a certificate with key %s, signed by %s and %s',
    async (key, caKey, hash) => {
      const own = makeCertificates(caKey)
      const pair = own.make({ name: 'localhost', key, hash })
      const bound = await startProxy({
        ...base,
        general: [
          `tls_certificate = "${pair.certPath}"`,
          `tls_private_key = "${pair.keyPath}"`,
          ...base.general.slice(2),
        ],
      })
      const ran = psql(
        conninfo('sslmode=require channel_binding=require').replace(
          `port=${proxy.port}`,
          `port=${bound.port}`,
        ),
        'select 1',
      )
      await bound.program.stop()
      expect(ran).toEqual({ code: 0, stdout: '1', stderr: '' })
    },
  )

  test('D41: a certificate whose signature names no hash offers no binding, and nobody is locked out', async () => {
    const own = makeCertificates('ed25519')
    const pair = own.make({ name: 'localhost', key: 'ed25519' })
    const unbound = await startProxy({
      ...base,
      general: [
        `tls_certificate = "${pair.certPath}"`,
        `tls_private_key = "${pair.keyPath}"`,
        ...base.general.slice(2),
      ],
    })
    const at = (more: string) =>
      conninfo(more).replace(`port=${proxy.port}`, `port=${unbound.port}`)
    const required = psql(at('sslmode=require channel_binding=require'), 'select 1')
    const preferred = psql(at('sslmode=require channel_binding=prefer'), 'select 1')
    await unbound.program.stop()
    expect(required.stderr).toContain('channel binding')
    expect(preferred).toEqual({ code: 0, stdout: '1', stderr: '' })
  })

  test.skipIf(noLibpq18)(
    'D31, D33: direct TLS of libpq 18 with ALPN, and channel binding over it',
    () => {
      const ran = psql(
        conninfo(
          `sslmode=verify-full sslrootcert=${certificates.caPath} sslnegotiation=direct channel_binding=require`,
        ),
        'select 1',
        libpq18,
      )
      expect(ran).toEqual({ code: 0, stdout: '1', stderr: '' })
    },
  )

  test('D33: direct TLS without ALPN, or with another protocol, is not served', async () => {
    const attempt = (ALPNProtocols?: string[]) =>
      new Promise<string>((resolve) => {
        let heard = ''
        const socket = connectTls({
          host: '127.0.0.1',
          port: proxy.port,
          rejectUnauthorized: false,
          ...(ALPNProtocols ? { ALPNProtocols } : {}),
        })
        socket.on('secureConnect', () =>
          socket.write(startupPacket({ user: 'postgres', database: 'app' })),
        )
        socket.on('data', (chunk) => {
          heard += chunk.toString('latin1', 0, 1)
          socket.end()
        })
        socket.on('error', () => undefined)
        socket.on('close', () => resolve(heard))
      })
    expect(await attempt(['postgresql'])).toBe('R')
    expect(await attempt()).toBe('')
    expect(await attempt(['http/1.1'])).toBe('')
  })

  test('D31: the first message of direct TLS may come in pieces', async () => {
    const plain = createConnection({ host: '127.0.0.1', port: proxy.port })
    await new Promise((resolve) => plain.once('connect', resolve))
    plain.setNoDelay(true)
    // Bytes of the handshake go out one by one.
    const write = plain.write.bind(plain)
    const { Duplex } = await import('node:stream')
    const slow = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        const send = (at: number) => {
          if (at >= chunk.length) return done()
          const end = at < 12 ? at + 1 : chunk.length
          write(chunk.subarray(at, end), () => setImmediate(() => send(end)))
        }
        send(0)
      },
    })
    plain.on('data', (chunk) => slow.push(chunk))
    plain.on('close', () => slow.push(null))
    const secured = connectTls({
      socket: slow,
      rejectUnauthorized: false,
      ALPNProtocols: ['postgresql'],
    })
    secured.on('error', () => undefined)
    secured.once('secureConnect', () =>
      secured.write(startupPacket({ user: 'postgres', database: 'app' })),
    )
    const first = await new Promise<Buffer>((resolve) => secured.once('data', resolve))
    plain.destroy()
    expect(String.fromCharCode(first[0]!)).toBe('R')
  })

  test('D34: bytes behind SSLRequest that TLS did not protect end the login', async () => {
    const raw = new RawClient(proxy.port)
    raw.write(Buffer.concat([SSL_REQUEST, startupPacket({ user: 'postgres', database: 'app' })]))
    const [frame] = await raw.framesUntil('E')
    expect(frame?.body.toString()).toContain('received unencrypted data after SSL request')
  })

  test('D36: a cancel request by TLS reaches its statement', async () => {
    const client = clientOf()
    await client.connect()
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
    const failed = client.query('select pg_sleep(30)').catch((error: unknown) => error)
    await waitFor(async () => {
      const rows = await postgres().query(
        "select 1 from pg_stat_activity where query = 'select pg_sleep(30)' and state = 'active'",
      )
      return rows.length > 0
    })
    const key = Buffer.alloc(8)
    key.writeInt32BE(processID, 0)
    key.writeInt32BE(secretKey, 4)
    const socket = connectTls({
      host: '127.0.0.1',
      port: proxy.port,
      rejectUnauthorized: false,
      ALPNProtocols: ['postgresql'],
    })
    socket.on('error', () => undefined)
    socket.once('secureConnect', () => socket.write(untagged(CANCEL_REQUEST_CODE, key)))
    await new Promise((resolve) => socket.once('close', resolve))
    expect(await failed).toMatchObject({ code: '57014' })
    await client.end()
  })

  test('D34: tls_client_required turns away who comes in plain', async () => {
    const strict = await startProxy({
      ...base,
      general: [...base.general, 'tls_client_required = true', 'tls_min_version = "TLSv1.3"'],
    })
    const at = (more: string) => conninfo(more).replace(`port=${proxy.port}`, `port=${strict.port}`)
    const plain = psql(at('sslmode=disable'), 'select 1')
    const old = psql(at('sslmode=require ssl_max_protocol_version=TLSv1.2'), 'select 1')
    const good = psql(at('sslmode=require'), 'select 1')
    await strict.program.stop()
    expect(plain.stderr).toContain('only encrypted connections are accepted')
    expect(old.stderr).toContain('protocol version')
    expect(good).toEqual({ code: 0, stdout: '1', stderr: '' })
  })

  test.each([
    ['a certificate that is none', { 'server.crt': 'garbage', 'server.key': 'garbage' }],
    ['a key of another certificate', undefined],
  ])('D19: %s stops the start before the port opens', async (_what, files) => {
    const other = certificates.make({ name: 'other' })
    const setup = writeProxyFiles({
      ...base,
      general: [],
      files: files ?? {
        'server.crt': pem(server.certPath),
        'server.key': pem(other.keyPath),
      },
    })
    writeFileSync(
      setup.configPath,
      `[general]\nhost = "127.0.0.1"\nport = 0\ntls_certificate = "${setup.directory}/server.crt"\ntls_private_key = "${setup.directory}/server.key"\n${base.toml}`,
    )
    const ran = await runCli(['serve', '--config', setup.configPath, '--users', setup.usersPath])
    expect(ran.code).toBe(3)
    expect(ran.stdout).not.toContain('listening')
    expect(ran.stderr).toContain('could not use tls_certificate and tls_private_key')
  })

  test('D19: a RELOAD shows new clients the new certificate, and keeps the old one when the new is broken', async () => {
    const first = certificates.make({ name: 'first' })
    const reloaded = await startProxy({
      ...base,
      general: [
        `tls_certificate = "${first.certPath}"`,
        `tls_private_key = "${first.keyPath}"`,
        ...base.general.slice(2),
      ],
    })
    const shownName = () =>
      new Promise<string>((resolve, reject) => {
        const socket = connectTls(
          {
            host: '127.0.0.1',
            port: reloaded.port,
            rejectUnauthorized: false,
            ALPNProtocols: ['postgresql'],
          },
          () => {
            resolve(socket.getPeerCertificate().subject.CN as string)
            socket.destroy()
          },
        )
        socket.on('error', reject)
      })
    const held = clientOf({
      port: reloaded.port,
      ssl: { rejectUnauthorized: false },
    })
    await held.connect()
    expect(await shownName()).toBe('first')
    const second = certificates.make({ name: 'second' })
    writeFileSync(first.certPath, pem(second.certPath))
    const console = `host=127.0.0.1 port=${reloaded.port} user=admin dbname=pgshard password=console`
    const broken = psql(console, 'RELOAD')
    expect(broken.stderr).toContain('could not use tls_certificate and tls_private_key')
    expect(await shownName()).toBe('first')
    writeFileSync(first.keyPath, pem(second.keyPath))
    expect(psql(console, 'RELOAD').code).toBe(0)
    expect(await shownName()).toBe('second')
    expect((await held.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await held.end()
    await reloaded.program.stop()
  })
})

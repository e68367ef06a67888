/** Logins of every method on both sides, the packets before them, and the limits that hold for strangers. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import {
  CANCEL_REQUEST_CODE,
  databaseOf,
  errorField,
  GSSENC_REQUEST,
  psql,
  RawClient,
  type RunningServe,
  SSL_REQUEST,
  setHba,
  startProxy,
  startupPacket,
  untagged,
} from './rig.js'

const PASSWORD = 'correct horse'
const methods = ['scram', 'md5', 'plain', 'trust'] as const

describe.skipIf(isMissing('psql'))('logins', () => {
  const postgres = usePostgres({ version: 15, password: PASSWORD })
  let proxy: RunningServe
  let strict: RunningServe

  beforeAll(async () => {
    for (const method of methods) {
      const encryption = method === 'md5' ? 'md5' : 'scram-sha-256'
      const client = await postgres().connect()
      await client.query(`set password_encryption = '${encryption}'`)
      await client.query(`create role u_${method} login password '${PASSWORD}'`)
      await client.end()
    }
    await setHba(postgres(), [
      'host all u_md5 all md5',
      'host all u_plain all password',
      'host all u_trust all trust',
    ])
    const users = methods
      .map(
        (method) => `[[users]]
name = "u_${method}"
database = "app"
password = "${PASSWORD}"
${method === 'scram' ? '' : `auth_type = "${method}"\n`}`,
      )
      .join('\n')
    const setup = {
      toml: `[admin]\npassword = "console"\n${databaseOf(postgres())}${databaseOf(postgres(), 'other')}`,
      users: `${users}\n[[users]]\nname = "another"\ndatabase = "other"\npassword = "x"\n`,
    }
    proxy = await startProxy({ general: [], ...setup })
    strict = await startProxy({
      general: ['client_login_timeout = 700', 'max_user_client_connections = 2'],
      ...setup,
      toml: `${setup.toml}\n[tcp]\nkeepalive = false\n`,
    })
  })

  const conninfo = (user: string, password: string, more = '', port = proxy.port) =>
    `host=127.0.0.1 port=${port} user=${user} dbname=app password='${password}' ${more}`

  test.each(methods)(
    'D41, D45, D46: user with auth_type %s gets in, and its server login speaks what pg_hba.conf asks',
    async (method) => {
      const raw = new RawClient(proxy.port)
      raw.write(startupPacket({ user: `u_${method}`, database: 'app' }))
      const first = await raw.frame()
      raw.socket.destroy()
      const ran = psql(conninfo(`u_${method}`, PASSWORD), 'select current_user')
      // scram is the default, written by nobody
      const codes = { scram: 10, md5: 5, plain: 3, trust: 0 }
      expect(first?.tag).toBe('R')
      expect(first?.body.readInt32BE(0)).toBe(codes[method])
      expect(ran).toEqual({ code: 0, stdout: `u_${method}`, stderr: '' })
    },
  )

  test.each(['scram', 'md5', 'plain'] as const)(
    'D43: a wrong password with %s is 28P01, an unknown user the same, and the connection ends',
    async (method) => {
      for (const [user, password] of [
        [`u_${method}`, 'wrong'],
        ['nobody', PASSWORD],
      ]) {
        const client = new pg.Client({
          host: '127.0.0.1',
          port: proxy.port,
          user: user!,
          database: 'app',
          password: password!,
        })
        const ended = new Promise((resolve) => client.once('end', resolve))
        await expect(client.connect()).rejects.toMatchObject({
          code: '28P01',
          severity: 'FATAL',
          message: `password authentication failed for user "${user}"`,
        })
        await ended
      }
    },
  )

  test('D40: the right user and password do not open another database', () => {
    const at = (database: string, password: string) =>
      psql(
        `host=127.0.0.1 port=${proxy.port} user=u_scram dbname=${database} password='${password}'`,
        'select 1',
      ).stderr
    expect(at('other', PASSWORD)).toContain('password authentication failed for user "u_scram"')
    expect(at('nowhere', PASSWORD)).toContain('database "nowhere" does not exist')
    expect(at('nowhere', 'wrong')).toContain('password authentication failed')
  })

  test('D33, D35: GSSENCRequest is answered N, SSLRequest too without a certificate, then the login goes on', async () => {
    const raw = new RawClient(proxy.port)
    raw.write(GSSENC_REQUEST)
    expect((await raw.take(1)).toString()).toBe('N')
    raw.write(SSL_REQUEST)
    expect((await raw.take(1)).toString()).toBe('N')
    raw.write(startupPacket({ user: 'u_trust', database: 'app' }))
    const frames = await raw.framesUntil('Z')
    raw.socket.destroy()
    expect(frames[0]?.tag).toBe('R')
    expect(psql(conninfo('u_trust', '', 'gssencmode=prefer sslmode=prefer'), 'select 1').code).toBe(
      0,
    )
    const again = new RawClient(proxy.port)
    again.write(GSSENC_REQUEST)
    await again.take(1)
    again.write(GSSENC_REQUEST)
    const [refused] = await again.framesUntil('E')
    expect(errorField(refused!.body, 'M')).toContain('unsupported frontend protocol 1234.5680')
  })

  test('D38: a login hears R, S for each parameter, K and Z, in this order', async () => {
    const raw = new RawClient(proxy.port)
    raw.write(startupPacket({ user: 'u_trust', database: 'app' }))
    const tags = (await raw.framesUntil('Z')).map(({ tag }) => tag).join('')
    raw.socket.destroy()
    expect(tags).toMatch(/^RS+KZ$/)
  })

  test('D44: what clients are told equals what the server tells, and is asked once', async () => {
    const told = async (port: number, parameters: Record<string, string>) => {
      const raw = new RawClient(port)
      raw.write(startupPacket(parameters))
      const frames = await raw.framesUntil('Z')
      raw.socket.destroy()
      return Object.fromEntries(
        frames
          .filter(({ tag }) => tag === 'S')
          .map(({ body }) => body.toString().split('\0').slice(0, 2)),
      )
    }
    const parameters = { user: 'u_trust', application_name: 'told' }
    const first = await told(proxy.port, { ...parameters, database: 'app' })
    const opened = async () =>
      (
        await postgres().query(
          "select count(*)::int as n, max(backend_start)::text as last from pg_stat_activity where usename = 'u_trust' and application_name <> 'direct'",
        )
      )[0]
    const before = await opened()
    const second = await told(proxy.port, { ...parameters, database: 'app' })
    expect(await opened()).toEqual(before)
    const direct = await told(postgres().servers[0]!.port, {
      ...parameters,
      database: postgres().database,
    })
    expect(first).toEqual(direct)
    expect(second).toEqual(direct)
  })

  test('D37: cancel requests with keys that nobody has hit nobody', async () => {
    const clients = await Promise.all(
      [1, 2, 3].map(async () => {
        const client = new pg.Client({
          host: '127.0.0.1',
          port: proxy.port,
          user: 'u_trust',
          database: 'app',
        })
        await client.connect()
        return client
      }),
    )
    const running = clients.map((client) => client.query('select pg_sleep(0.7)'))
    const { processID } = clients[0] as unknown as { processID: number }
    await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        const key = randomBytes(8)
        // half of them know a process id
        if (n % 2) key.writeInt32BE(processID, 0)
        const raw = new RawClient(proxy.port)
        raw.write(untagged(CANCEL_REQUEST_CODE, key))
        await raw.closed()
      }),
    )
    for (const done of running) expect((await done).rowCount).toBe(1)
    await Promise.all(clients.map((client) => client.end()))
  })

  test('D33: startup packets and answers that are too long end the connection', async () => {
    const long = new RawClient(proxy.port)
    const head = Buffer.alloc(8)
    head.writeInt32BE(10_001, 0)
    head.writeInt32BE(196_608, 4)
    long.write(head)
    expect((await long.framesUntil('E')).at(-1)?.tag).toBe('E')
    await long.closed()
    const answer = new RawClient(proxy.port)
    answer.write(startupPacket({ user: 'u_plain', database: 'app' }))
    await answer.frame()
    const claim = Buffer.alloc(5)
    claim.write('p')
    claim.writeInt32BE(1_000_000_000, 1)
    answer.write(claim)
    const [refused] = await answer.framesUntil('E')
    expect(errorField(refused!.body, 'C')).toBe('08P01')
    await answer.closed()
    const early = new RawClient(proxy.port)
    early.write(startupPacket({ user: 'u_plain', database: 'app' }))
    await early.frame()
    early.write(Buffer.from('Q\0\0\0\x0dselect 1\0', 'latin1'))
    const [unexpected] = await early.framesUntil('E')
    expect(errorField(unexpected!.body, 'M')).toContain('not allowed during authentication')
  })

  test('client_login_timeout ends a login that does not go on', async () => {
    const silent = new RawClient(strict.port)
    const slow = new RawClient(strict.port)
    slow.write(startupPacket({ user: 'u_scram', database: 'app' }))
    await slow.frame()
    for (const raw of [silent, slow]) {
      const [refused] = await raw.framesUntil('E')
      expect(errorField(refused!.body, 'M')).toBe('the login was not finished within 700 ms')
      await raw.closed()
    }
  })

  test('max_user_client_connections holds when many come at once', async () => {
    const attempts = Array.from({ length: 12 }, () => {
      const client = new pg.Client({
        host: '127.0.0.1',
        port: strict.port,
        user: 'u_trust',
        database: 'app',
      })
      client.on('error', () => undefined)
      return client.connect().then(
        () => client,
        (error: unknown) => error,
      )
    })
    const outcomes = await Promise.all(attempts)
    const clients = outcomes.filter((one) => one instanceof pg.Client)
    const refused = outcomes.filter((one) => !(one instanceof pg.Client))
    expect(clients).toHaveLength(2)
    for (const error of refused) {
      expect(error).toMatchObject({
        code: '53300',
        message: 'too many connections for role "u_trust"',
      })
    }
    await Promise.all(clients.map((client) => client.end()))
    await waitFor(() => psql(conninfo('u_trust', '', '', strict.port), 'select 1').code === 0)
  })

  test.skipIf(isMissing('ss'))(
    'D32: accepted sockets have the keep-alive timer, and none when it is off',
    async () => {
      const timersOf = async (port: number) => {
        const raw = new RawClient(port)
        raw.write(startupPacket({ user: 'u_trust', database: 'app' }))
        await raw.framesUntil('Z')
        const own = raw.socket.localPort
        const lines = execFileSync(
          'ss',
          ['-tnoH', 'state', 'established', `( sport = :${port} )`],
          {
            encoding: 'utf8',
          },
        )
        raw.socket.destroy()
        return lines.split('\n').filter((line) => new RegExp(`:${own}(\\s|$)`).test(line))
      }
      const [on] = await timersOf(proxy.port)
      const [off] = await timersOf(strict.port)
      expect(on).toContain('timer:(keepalive,')
      expect(off).toBeDefined()
      expect(off).not.toContain('keepalive')
    },
  )
})

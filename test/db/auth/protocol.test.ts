/** Which protocol a client speaks with us: what the servers behind speak, as it would with them. */
import { beforeAll, describe, expect, test } from 'vitest'
import { isFileMissing, isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import {
  CANCEL_REQUEST_CODE,
  databaseOf,
  errorField,
  libpq18,
  psql,
  RawClient,
  type RunningServe,
  startProxy,
  startupPacket,
  untagged,
} from './rig.js'

const protocol = (minor: number) => (3 << 16) | minor

const user =
  '[[users]]\nname = "u_trust"\ndatabase = "app"\npassword = "x"\nauth_type = "trust"\nserver_user = "postgres"\n'

describe.skipIf(isMissing('psql'))('in front of PostgreSQL 18', () => {
  const postgres = usePostgres({ version: 18 })
  let proxy: RunningServe

  beforeAll(async () => {
    proxy = await startProxy({ general: [], toml: databaseOf(postgres()), users: user })
    // the version is known when the schema has been read
    await waitFor(async () => (await firstFrame(proxy.port, 2)).tag !== 'v')
  })

  test('protocol 3.2 gets a cancel key of 32 bytes, which cancels; its first four do not', async () => {
    const raw = new RawClient(proxy.port)
    raw.write(startupPacket({ user: 'u_trust', database: 'app' }, protocol(2)))
    const frames = await raw.framesUntil('Z')
    const key = frames.find(({ tag }) => tag === 'K')!.body
    expect(frames.some(({ tag }) => tag === 'v')).toBe(false)
    expect(key.length).toBe(36)
    const sql = 'select pg_sleep(20)\0'
    const query = Buffer.alloc(5 + sql.length)
    query.write('Q')
    query.writeInt32BE(4 + sql.length, 1)
    query.write(sql, 5)
    raw.write(query)
    await waitFor(async () => {
      const rows = await postgres().query(
        "select 1 from pg_stat_activity where query = 'select pg_sleep(20)' and state = 'active'",
      )
      return rows.length > 0
    })
    for (const bytes of [key.subarray(0, 8), key]) {
      const cancel = new RawClient(proxy.port)
      cancel.write(untagged(CANCEL_REQUEST_CODE, bytes))
      await cancel.closed()
      if (bytes !== key) {
        const rows = await postgres().query(
          "select 1 from pg_stat_activity where query = 'select pg_sleep(20)' and state = 'active'",
        )
        expect(rows).toHaveLength(1)
      }
    }
    const failed = (await raw.framesUntil('Z')).find(({ tag }) => tag === 'E')
    raw.socket.destroy()
    expect(errorField(failed!.body, 'C')).toBe('57014')
  })

  test('what we do not speak is negotiated down: versions above 3.2, options of the protocol', async () => {
    const raw = new RawClient(proxy.port)
    raw.write(
      startupPacket({ user: 'u_trust', database: 'app', '_pq_.compression': 'on' }, protocol(9)),
    )
    const frames = await raw.framesUntil('Z')
    raw.socket.destroy()
    expect(frames[0]?.tag).toBe('v')
    expect(frames[0]?.body.readInt32BE(0)).toBe(protocol(2))
    expect(frames[0]?.body.readInt32BE(4)).toBe(1)
    expect(frames[0]?.body.toString('utf8', 8)).toBe('_pq_.compression\0')
    const old = new RawClient(proxy.port)
    old.write(startupPacket({ user: 'u_trust', database: 'app', '_pq_.x': '' }))
    const [first, ...rest] = await old.framesUntil('Z')
    old.socket.destroy()
    expect(first?.tag).toBe('v')
    expect(first?.body.readInt32BE(0)).toBe(protocol(0))
    expect(rest.find(({ tag }) => tag === 'K')?.body.length).toBe(8)
  })

  test.skipIf(isFileMissing(libpq18))('libpq 18 speaks protocol 3.2 with us', () => {
    const ran = psql(
      `host=127.0.0.1 port=${proxy.port} user=u_trust dbname=app min_protocol_version=3.2 max_protocol_version=3.2`,
      'select 1',
      libpq18,
    )
    expect(ran).toEqual({ code: 0, stdout: '1', stderr: '' })
  })
})

describe('in front of PostgreSQL 15', () => {
  const postgres = usePostgres({ version: 15 })

  test('protocol 3.2 is negotiated down to 3.0, and 4.0 is told what there is', async () => {
    const proxy = await startProxy({ general: [], toml: databaseOf(postgres()), users: user })
    const raw = new RawClient(proxy.port)
    raw.write(startupPacket({ user: 'u_trust', database: 'app' }, protocol(2)))
    const frames = await raw.framesUntil('Z')
    raw.socket.destroy()
    expect(frames[0]?.tag).toBe('v')
    expect(frames[0]?.body.readInt32BE(0)).toBe(protocol(0))
    expect(frames.find(({ tag }) => tag === 'K')?.body.length).toBe(8)
    const newer = new RawClient(proxy.port)
    newer.write(startupPacket({ user: 'u_trust', database: 'app' }, 4 << 16))
    const refusal = (await newer.framesUntil('E')).at(-1)
    expect(errorField(refusal!.body, 'M')).toBe(
      'unsupported frontend protocol 4.0: server supports 3.0 to 3.0',
    )
    await newer.closed()
  })
})

async function firstFrame(port: number, minor: number) {
  const raw = new RawClient(port)
  raw.write(startupPacket({ user: 'u_trust', database: 'app' }, protocol(minor)))
  const [first] = await raw.framesUntil('Z')
  raw.socket.destroy()
  return first!
}

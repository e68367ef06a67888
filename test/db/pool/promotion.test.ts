import { expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import { Pools } from '../../../src/pool/pool-map.js'
import type { UserPools } from '../../../src/pool/user-pools.js'
import { openServer } from '../../../src/server/open-server.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { defineHost, definePool } from '../../unit/pool/define.js'

const postgres = usePostgres({ version: 15, replicas: 1 })

it('D99: writes follow a promotion, without a restart', async () => {
  const { servers, replicas, user, password, database } = postgres()
  const hosts = [...servers, ...replicas].map(({ host, port }) =>
    defineHost({
      role: 'auto',
      target: { host, port, user, database, ...(password === undefined ? {} : { password }) },
    }),
  )
  const pools = new Pools({
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    openServer,
    roleCheckTimeoutMs: 1000,
  })
  pools.apply([definePool([hosts])])
  pools.start()
  const app = pools.shardPools('u', 'app') as UserPools
  try {
    const before = await app.checkout(0, 'primary')
    expect(before.resource.target.port).toBe(servers[0]?.port)
    await before.resource.query('CREATE TABLE promoted (n int)')
    const [state] = await before.resource.query('SELECT pg_current_wal_insert_lsn()')
    before.release()
    const replica = replicas[0]
    const ask = async (sql: string) => {
      const server = await openServer({ ...hosts[1]?.target, ...replica } as typeof replica & {
        user: string
        database: string
      })
      try {
        return (await server.query(sql))[0]?.rows[0]?.[0]
      } finally {
        server.close()
      }
    }
    const lsn = state?.rows[0]?.[0]
    await waitFor(async () => (await ask(`SELECT pg_last_wal_replay_lsn() >= '${lsn}'`)) === 't')
    process.kill(servers[0]?.pid ?? 0, 'SIGKILL')
    await ask('SELECT pg_promote()')
    const after = await waitFor(async () => {
      const checkout = await app.checkout(0, 'primary')
      if (checkout.resource.target.port === replica?.port) return checkout
      checkout.discard('not yet')
      return undefined
    })
    const [written] = await after.resource.query('INSERT INTO promoted VALUES (1)')
    expect(written?.tag).toBe('INSERT 0 1')
    after.release()
  } finally {
    pools.goOffline()
    await pools.whenDrained()
  }
})

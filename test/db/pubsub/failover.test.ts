/** A primary that dies or is replaced takes its listeners with it; new ones are heard on the next. */
import { expect, it } from 'vitest'
import { startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { Listener } from './listener.js'

const postgres = usePostgres({ version: 15, replicas: 1 })

it('listeners end when the primary is replaced, and those who come back hear the new one', async () => {
  const { servers, replicas, database } = postgres()
  const replica = replicas[0]!
  const shards = [...servers, ...replicas].map(({ host, port }) => ({
    host,
    port,
    database,
    role: 'auto' as const,
    shard: 0,
  }))
  const served = await startServe({
    shards,
    general: ['lsn_check_delay = 0', 'lsn_check_interval = 200', 'checkout_timeout = 20000'],
  })
  const listener = await waitFor(() => Listener.at(served, 'listen a'))
  const inTransaction = await Listener.at(served, 'listen a', 'begin', 'listen b')
  await postgres().query("notify a, 'before'")
  await listener.until('before')
  process.kill(servers[0]!.pid, 'SIGKILL')
  await waitFor(() => listener.ended)
  expect(listener.ended).toMatchObject({ code: '57P01' })
  await waitFor(() => inTransaction.ended)
  const promoter = await Listener.atUrl(
    `postgres://${postgres().user}@${replica.host}:${replica.port}/${database}`,
    'select pg_promote()',
  )
  const again = await waitFor(() => Listener.at(served, 'listen a'), { deadlineMs: 30_000 })
  await promoter.query("notify a, 'after'")
  expect(await again.until('after')).toEqual(['after'])
  await Promise.all([again.end(), promoter.end()])
})

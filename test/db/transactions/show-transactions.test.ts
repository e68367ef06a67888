/** What the console says of two-phase commits: those under way to their end, and how many there were. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../support/wait-for.js'
import { SHARDS, useShardedRig } from '../session/sharded-rig.js'

describe('SHOW TRANSACTIONS', () => {
  const rig = useShardedRig()
  let admin: pg.Client

  beforeAll(async () => {
    admin = new pg.Client(rig().served.adminUrl)
    await admin.connect()
  })
  afterAll(() => admin.end())

  const shown = async () => (await admin.query('show transactions')).rows

  it('D143, D147: lists a prepared transaction of a dead process until the sweep has ended it', async () => {
    const [{ id, cluster_id: cluster } = {}] = await rig().onShard(
      1,
      'select id, cluster_id from pgshard.shard where is_here',
    )
    const gid = `pgshard_${cluster}_${id}_${'ab'.repeat(16)}_${id}`
    await rig().onShard(1, 'begin')
    await rig().onShard(1, "insert into country values ('at')")
    await rig().onShard(1, `prepare transaction '${gid}'`)
    // the sweep comes every three seconds, and leaves what is younger to who runs it
    const rows = await waitFor(
      async () => {
        const found = await shown()
        return found.length > 0 ? found : undefined
      },
      { what: 'the transaction in SHOW TRANSACTIONS' },
    )
    // the other shards are databases of the same server, and not asked to end it
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({
      database: 'app',
      user: 'postgres',
      transaction_name: gid,
      transaction_state: 'prepared',
      shard: '1',
      reason: expect.stringMatching(/younger/),
    })
    await waitFor(async () => (await shown()).length === 0, { what: 'the end of it' })
    expect(
      await rig().onShard(1, 'select gid from pg_prepared_xacts where gid = $1', [gid]),
    ).toEqual([])
    expect(await rig().onShard(1, "select code from country where code = 'at'")).toEqual([])
  })

  it('D149: two-phase commits are counted, for the client and for the pool', async () => {
    const client = await rig().served.connect()
    for (let n = 0; n < 3; n++) {
      await client.query('begin')
      for (let shard = 0; shard < SHARDS - 1; shard++)
        await client.query('insert into item values ($1, $2)', [rig().key(shard), n])
      await client.query('commit')
    }
    await client.query('begin')
    await client.query('insert into item values ($1, 9)', [rig().key(0)])
    await client.query('commit')
    const { rows } = await admin.query('show clients')
    const own = rows.find((row) => row.database === 'app')
    expect(own).toMatchObject({ transactions_2pc: '3' })
    await client.end()
  })
})

/** What clients of serve hear of two-phase commit: a shard that is lost in its second phase, users that may not recover. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { expectNothingLeft } from '../../support/leak-check.js'
import { startCli } from '../../support/run-cli.js'
import { type Spoiler, startSpoiler } from '../../support/spoiler.js'
import { waitFor } from '../../support/wait-for.js'
import { failure, SHARDS, useShardedRig } from '../session/sharded-rig.js'

const INSERT = 'insert into item (k, id, v) values ($1, $2, $3)'

describe('a shard that cannot be reached in the second phase', () => {
  const spoilers: Spoiler[] = []
  afterAll(() => Promise.all(spoilers.map((spoiler) => spoiler.close())))
  const rig = useShardedRig(['two_phase_wait_ms = 300'], {
    addresses: async (shards) => {
      for (const shard of shards) spoilers.push(await startSpoiler(shard))
      return shards.map(({ database }, i) => ({
        ...{ host: spoilers[i]!.host, port: spoilers[i]!.port },
        database,
      }))
    },
  })

  it('D147: COMMIT says which one, and it commits when it can be reached', async () => {
    const client = await rig().served.connect()
    const heard: string[] = []
    client.on('notice', ({ severity, message }) => heard.push(`${severity} ${message}`))
    // the decision waits, so that the other shard is lost between its PREPARE and its COMMIT PREPARED
    await rig().onShard(0, 'begin')
    await rig().onShard(0, 'lock table pgshard.decision in access exclusive mode')
    await client.query('begin')
    for (const shard of [0, 1]) await client.query(INSERT, [rig().key(shard), 1, 'x'])
    const commit = client.query('commit')
    const prepared = () => rig().onShard(1, 'select gid from pg_prepared_xacts')
    await waitFor(async () => (await prepared()).length > 0, { what: 'the prepared transaction' })
    await spoilers[1]!.refuse(true)
    spoilers[1]!.strike('reset')
    await rig().onShard(0, 'rollback')
    expect((await commit).command).toBe('COMMIT')
    expect(heard).toEqual([expect.stringMatching(/^WARNING .*committed, but shard 1 will show/)])
    await spoilers[1]!.refuse(false)
    for (let shard = 0; shard < SHARDS; shard++)
      await expectNothingLeft((sql) => rig().onShard(shard, sql), 10_000)
    const rows = await rig().everywhere('select id from item')
    expect(rows.map((some) => some.length)).toEqual([1, 1, 0])
    await client.end()
  }, 40_000)
})

describe('a user that may not recover', () => {
  const rig = useShardedRig()

  it('D150: writes several shards when a configured superuser recovers, else is told why not', async () => {
    const { served, databases } = rig()
    const teller = `teller_${databases[0]}`
    await rig().onShard(0, `create role ${teller} login`)
    await rig().everywhere(`grant all on item to ${teller}`)
    const entry = `\n[[users]]\nname = "${teller}"\ndatabase = "app"\npassword = "unused"\n`
    const write = async (port: number) => {
      const client = new pg.Client(`postgres://${teller}@127.0.0.1:${port}/app`)
      await client.connect()
      try {
        await client.query('begin')
        for (const shard of [0, 1]) await client.query(INSERT, [rig().key(shard), 1, 'x'])
        return (await client.query('commit')).command
      } finally {
        await client.end()
      }
    }

    const alone = join(dirname(served.usersPath), 'alone.toml')
    writeFileSync(alone, entry)
    const args = ['serve', '-c', served.configPath, '-u', alone, '--port', '0']
    const lonely = startCli(args)
    const port = Number((await lonely.waitForOutput(/listening on \S+:(\d+)/))[1])
    expect(await failure(write(port))).toMatch(/^0A000 the transaction would write shard 1 after/)
    const admin = new pg.Client(served.adminUrl.replace(/:\d+\//, `:${port}/`))
    await admin.connect()
    expect((await admin.query('show transactions')).rows).toEqual([
      expect.objectContaining({
        user: teller,
        transaction_state: 'unavailable',
        reason: expect.stringContaining('shard 0 does not let this user recover'),
      }),
    ])
    await admin.end()
    await lonely.stop()

    appendFileSync(served.usersPath, entry)
    const console = new pg.Client(served.adminUrl)
    await console.connect()
    await console.query('reload')
    // whether it may is asked behind the reload
    const command = await waitFor(() => write(served.port).catch(() => undefined), {
      what: 'a COMMIT of the user that may not recover',
    })
    expect(command).toBe('COMMIT')
    await console.end()
    expect((await rig().everywhere('select id from item')).map((rows) => rows.length)).toEqual([
      1, 1, 0,
    ])
    for (let shard = 0; shard < SHARDS; shard++)
      await expectNothingLeft((sql) => rig().onShard(shard, sql))
    await rig().everywhere(`drop owned by ${teller}`)
    await rig().onShard(0, `drop role ${teller}`)
  }, 60_000)
})

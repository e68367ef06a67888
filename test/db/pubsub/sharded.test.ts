/** LISTEN and NOTIFY over shards: everything passes through shard 0, whatever shards the client works on. */
import { afterEach, describe, expect, it } from 'vitest'
import { useShardedRig } from '../session/sharded-rig.js'
import { Listener } from './listener.js'

describe('LISTEN over shards', () => {
  const rig = useShardedRig()
  const open: Listener[] = []

  const listen = async (...statements: string[]): Promise<Listener> => {
    const listener = await Listener.at(rig().served, ...statements)
    open.push(listener)
    return listener
  }

  afterEach(async () => {
    for (const listener of open.splice(0)) await listener.end()
  })

  it('is heard from the proxy, from shard 0 and from a transaction that writes another shard', async () => {
    const listener = await listen('listen a')
    const sender = await listen()
    await sender.query("notify a, 'alone'")
    await rig().onShard(0, "notify a, 'on shard 0'")
    // the writes are prepared on the other shard, and shard 0, which notifies, decides
    await sender.query('begin')
    await sender.query(`insert into item values (${rig().key(1)}, 1, 'x')`)
    await sender.query("notify a, 'with a write elsewhere'")
    await sender.query('commit')
    await sender.query('begin')
    await sender.query(`insert into item values (${rig().key(2)}, 2, 'x')`)
    await sender.query("notify a, 'undone'")
    await sender.query('rollback')
    await sender.client.query("select pg_notify($1, 'last')", ['a'])
    expect(await listener.until('last')).toEqual([
      'alone',
      'on shard 0',
      'with a write elsewhere',
      'last',
    ])
    expect(await rig().onShard(1, 'select id from item where id = 1')).toHaveLength(1)
  })

  it('may stand in a transaction of several shards, and is undone with it', async () => {
    const listener = await listen('begin')
    await listener.query(`insert into item values (${rig().key(1)}, 11, 'x')`)
    await listener.query('listen pair')
    await listener.query(`insert into item values (${rig().key(2)}, 12, 'x')`)
    await listener.query('commit')
    await listener.query('begin')
    await listener.query(`insert into item values (${rig().key(1)}, 13, 'x')`)
    await listener.client.query({ text: 'listen gone', name: 'gone' })
    await listener.query('rollback')
    await rig().onShard(0, "notify gone, 'never'")
    await rig().onShard(0, "notify pair, 'heard'")
    expect(await listener.until('heard')).toEqual(['heard'])
    // a read of all shards goes on meanwhile, and hears nothing in its middle
    const { rows } = await listener.query('select id from item where id > 10')
    expect(rows.map(({ id }) => id).sort()).toEqual([11, 12])
  })
})

/** What the shards hear when a transaction ends, seen on the wire, and what becomes of one whose client has vanished. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import type pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { waitFor } from '../../support/wait-for.js'
import { SHARDS, useShardedRig } from '../session/sharded-rig.js'

const INSERT = 'insert into item (k, id, v) values ($1, $2, $3)'

/** Between serve and a shard: keeps what serve says, and may hold back what the shard answers to it. */
class Wire {
  said = ''
  /** Answers wait while it says so of what serve has just said. */
  holds: (said: string) => boolean = () => false
  #held: (() => void)[] = []
  /** Connections whose answers wait: also those whose answer has not come yet. */
  readonly #holding = new Set<Socket>()
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(target: { host: string; port: number }) {
    this.#server = createServer((near) => {
      const far = connect(target.port, target.host)
      near.on('data', (chunk: Buffer) => {
        const text = chunk.toString('latin1')
        this.said += text
        if (this.holds(text)) this.#holding.add(far)
        far.write(chunk)
      })
      far.on('data', (chunk: Buffer) => {
        if (this.#holding.has(far)) this.#held.push(() => near.write(chunk))
        else near.write(chunk)
      })
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one)
        one.on('error', () => undefined)
        one.on('close', () => other.destroy())
      }
    })
  }

  async listen(): Promise<number> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done))
    return (this.#server.address() as { port: number }).port
  }

  letGo(): void {
    this.holds = () => false
    this.#holding.clear()
    for (const one of this.#held.splice(0)) one()
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}

const wires: Wire[] = []
afterAll(() => {
  for (const wire of wires) wire.close()
})

const listen = () => {
  for (const wire of wires) wire.said = ''
}

describe('ends of transactions', () => {
  const rig = useShardedRig(['rollback_timeout = 700'], {
    addresses: async (shards) => {
      const at: { host: string; port: number; database: string }[] = []
      for (const shard of shards) {
        const wire = new Wire(shard)
        wires.push(wire)
        at.push({ host: '127.0.0.1', port: await wire.listen(), database: shard.database })
      }
      return at
    },
  })
  const write = async (client: pg.Client, shards: readonly number[], id: number) => {
    await client.query('begin')
    for (const shard of shards) await client.query(INSERT, [rig().key(shard), id, 'x'])
  }
  const who = async (shard: number): Promise<unknown[]> => {
    const sql =
      "select pid from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"
    return (await rig().onShard(shard, sql)).map(({ pid }) => pid)
  }

  test('D141: COMMIT is told to a transaction of one written shard as it is, and to several in two phases', async () => {
    const client = await rig().served.connect()
    await write(client, [1], 1)
    await client.query('select id from item')
    listen()
    await client.query('commit')
    expect(wires.map(({ said }) => /COMMIT/i.test(said))).toEqual([true, true, true])
    expect(wires.some(({ said }) => /PREPARE|decide/i.test(said))).toBe(false)
    await write(client, [0, 2], 2)
    listen()
    await client.query('commit')
    expect(wires.map(({ said }) => /PREPARE TRANSACTION/.test(said))).toEqual([false, false, true])
    expect(wires.map(({ said }) => /pgshard\.decide/.test(said))).toEqual([true, false, false])
    await client.end()
  })

  test('D142: the first phase prepares all shards but the deciding one at once', async () => {
    const client = await rig().served.connect()
    await write(client, [0, 1, 2], 3)
    listen()
    for (const wire of wires) wire.holds = (said) => said.includes('PREPARE TRANSACTION')
    const commit = client.query('commit')
    // neither has been answered
    const hasPrepared = ({ said }: Wire) => /PREPARE TRANSACTION 'pgshard_/.test(said)
    await waitFor(() => wires.filter(hasPrepared).length === SHARDS - 1, {
      what: 'two shards that prepare',
    })
    expect(wires.some(({ said }) => said.includes('pgshard.decide'))).toBe(false)
    for (const wire of wires) wire.letGo()
    expect((await commit).command).toBe('COMMIT')
    expect(wires.filter(({ said }) => said.includes('COMMIT PREPARED'))).toHaveLength(SHARDS - 1)
    await client.end()
  })

  test('D83: a transaction whose client vanished is rolled back on its own servers, or these are closed', async () => {
    const vanish = (client: pg.Client) => {
      client.on('error', () => undefined)
      ;(client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
    }
    const clean = await rig().served.connect()
    await write(clean, [0, 1], 4)
    const pids = await who(0)
    expect(pids).toHaveLength(1)
    vanish(clean)
    await waitFor(async () => (await who(0)).length === 0, { what: 'the ROLLBACK' })
    // the lock is gone, and the server serves the next one
    const next = await rig().served.connect()
    await write(next, [0], 4)
    expect(await who(0)).toEqual(pids)
    await next.query('rollback')
    await next.end()

    const stuck = await rig().served.connect()
    await write(stuck, [2], 5)
    const [pid] = await who(2)
    const [wire] = wires.slice(2)
    wire!.holds = (said) => said.includes('ROLLBACK')
    vanish(stuck)
    const isThere = async () =>
      (await rig().onShard(2, 'select 1 from pg_stat_activity where pid = $1', [pid])).length > 0
    await waitFor(async () => !(await isThere()), { what: 'the end of the server that hangs' })
    wire!.letGo()
    expect(await rig().onShard(2, 'select 1 from item where id = 5')).toEqual([])
  })
})

/**
 * A small shop on N databases for tests of moves: sharded, reference and unsharded tables with awkward values, writers
 * that go on all the time, and a door that behaves as a proxy with PAUSE, RELOAD and RESUME does.
 */
import pg from 'pg'
import type { HostTarget } from '../../src/pg/host-client.js'
import type { TrafficGate } from '../../src/reshard/cutover/traffic-gate.js'
import type { ReshardSide } from '../../src/reshard/side.js'
import { makeShardMap } from '../../src/sharding/shard-map.js'
import type { ShardedTable, ShardingConfig } from '../../src/sharding/sharded-table.js'

export const shopSchema = `
CREATE TYPE mood AS ENUM ('calm', 'tense', 'it''s "odd"');
CREATE TABLE orders (tenant bigint, id bigint, note text, amount numeric(12,2), at timestamptz DEFAULT now(),
  big text, tags text[], feeling mood, doc jsonb, twice numeric GENERATED ALWAYS AS (amount * 2) STORED,
  PRIMARY KEY (tenant, id));
ALTER TABLE orders ALTER big SET STORAGE EXTERNAL;
CREATE TABLE lines (tenant bigint, order_id bigint, n int, what varchar(40), raw bytea, PRIMARY KEY (tenant, order_id, n),
  FOREIGN KEY (tenant, order_id) REFERENCES orders (tenant, id) ON DELETE CASCADE);
CREATE INDEX lines_what ON lines (what);
CREATE TABLE country (code char(2) PRIMARY KEY, name text NOT NULL);
CREATE TABLE "Odd ""Name" (tenant bigint PRIMARY KEY, "sel ect" text, seq bigserial);
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := coalesce(NEW.note, '') || '!'; RETURN NEW; END $$;
CREATE TRIGGER stamp BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION stamp();`

export function shopSharding(shardCount: number): ShardingConfig {
  const placement = {
    kind: 'hash',
    hasher: 'postgres',
    buckets: shardCount,
    bucketMap: Array.from({ length: shardCount }, (_, shard) => shard),
  } as const
  const table = (name: string): ShardedTable => ({
    name,
    column: 'tenant',
    keyType: 'bigint',
    placement,
  })
  return {
    shardCount,
    tables: [table('orders'), table('lines'), table('Odd "Name')],
    referenceTables: [{ name: 'country' }],
    schemas: [],
    otherTables: 'reference',
  }
}

export function shardOf(tenant: number | bigint, sharding: ShardingConfig): number {
  const map = makeShardMap(sharding)
  const bytes = Buffer.from(String(tenant))
  return map.placerOf(sharding.tables[0] as ShardedTable).ofText(bytes, 0, bytes.length)
}

/** Routes by tenant as a proxy would; between `pause` and `resume` nothing starts. */
export class FakeProxy implements TrafficGate {
  side: ReshardSide
  readonly #next: ReshardSide
  #clients: pg.Client[] = []
  #paused: Promise<void> | undefined
  #go: () => void = () => undefined
  #running = 0
  calls: string[] = []
  failReload = false

  constructor(side: ReshardSide, next: ReshardSide) {
    this.side = side
    this.#next = next
  }

  async open(): Promise<void> {
    this.calls.push('open')
  }

  async pause(): Promise<void> {
    this.calls.push('pause')
    this.#paused = new Promise((resolve) => {
      this.#go = resolve
    })
    while (this.#running > 0) await new Promise((resolve) => setImmediate(resolve))
  }

  async reload(): Promise<void> {
    this.calls.push('reload')
    if (this.failReload) throw new Error('the proxy would not read it')
    await this.connect(this.#next)
  }

  async resume(): Promise<void> {
    this.calls.push('resume')
    this.#paused = undefined
    this.#go()
  }

  async close(): Promise<void> {
    this.calls.push('close')
  }

  async connect(side = this.side): Promise<void> {
    const old = this.#clients
    this.side = side
    this.#clients = await Promise.all(side.shards.map(connect))
    await Promise.all(old.map((client) => client.end()))
  }

  async end(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.end()))
  }

  /** One transaction on the shard of a tenant. */
  async on(tenant: number, work: (client: pg.Client) => Promise<void>): Promise<void> {
    await this.#enter()
    try {
      const shard = shardOf(tenant, this.side.sharding)
      // A connection of its own: transactions of several writers must not mix.
      const client = await connect(this.side.shards[shard] as HostTarget)
      try {
        await client.query('BEGIN')
        await work(client)
        await client.query('COMMIT')
      } finally {
        await client.end()
      }
    } finally {
      this.#running--
    }
  }

  /** The same statement on every shard. */
  async everywhere(sql: string, values: unknown[]): Promise<void> {
    await this.#enter()
    try {
      await Promise.all(this.#clients.map((client) => client.query(sql, values)))
    } finally {
      this.#running--
    }
  }

  async #enter(): Promise<void> {
    while (this.#paused !== undefined) await this.#paused
    this.#running++
  }
}

export async function connect(target: HostTarget): Promise<pg.Client> {
  const client = new pg.Client({ ...target })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

const notes = [
  'plain',
  '',
  null,
  'naïve – “quotes” \\ \t\n\r',
  "it's",
  '\u{1F40C}\u0301',
  '\\N',
  '\\.',
  'NULL',
]

/** Writes until told to stop; `model` is what must be there in the end. */
export class Writers {
  /** tenant/id → note without the trigger's mark, amount. */
  readonly model = new Map<string, { note: string | null; amount: string; bigLength: number }>()
  readonly countries = new Map<string, string>()
  committed = 0
  readonly #proxy: FakeProxy
  #stopped = false
  #loops: Promise<void>[] = []
  #seed: number

  constructor(proxy: FakeProxy, seed: number) {
    this.#proxy = proxy
    this.#seed = seed
  }

  #random(below: number): number {
    this.#seed = (Math.imul(this.#seed, 1664525) + 1013904223) >>> 0
    return Math.floor((this.#seed / 2 ** 32) * below)
  }

  start(count: number): void {
    for (let writer = 0; writer < count; writer++) this.#loops.push(this.#write(writer))
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#loops)
  }

  /** Each writer has tenants of its own, so that the model knows the order. */
  async #write(writer: number): Promise<void> {
    for (let id = 1; !this.#stopped; id++) {
      const tenant = writer * 1000 + this.#random(40)
      await this.#insert(tenant, id)
      if (this.#random(3) === 0) await this.#update(tenant, id)
      if (this.#random(6) === 0) await this.#delete(tenant, id)
      if (this.#random(8) === 0) await this.#rekey(tenant, id)
      if (writer === 0 && this.#random(10) === 0) await this.#country()
    }
  }

  async #insert(tenant: number, id: number): Promise<void> {
    const note = notes[this.#random(notes.length)] as string | null
    const amount = `${this.#random(100000)}.${10 + this.#random(90)}`
    const bigLength = this.#random(4) === 0 ? 9000 : 10
    await this.#proxy.on(tenant, async (client) => {
      await client.query(
        `INSERT INTO orders (tenant, id, note, amount, big, tags, feeling, doc)
         VALUES ($1, $2, $3, $4, (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300) n)::varchar, $5, $6, $7)`.replace(
          '300)',
          `${Math.ceil(bigLength / 32)})`,
        ),
        [
          tenant,
          id,
          note,
          amount,
          ['a,b', '{"x"}', null],
          `it's "odd"`,
          { n: 12345678901234567890n.toString(), note },
        ],
      )
      await client.query('INSERT INTO lines VALUES ($1, $2, 1, $3, $4)', [
        tenant,
        id,
        'x'.repeat(id % 40),
        Buffer.from([0, 1, 255, id & 255]),
      ])
    })
    this.model.set(`${tenant}/${id}`, {
      note: `${note ?? ''}!`,
      amount,
      bigLength: Math.ceil(bigLength / 32) * 32,
    })
    this.committed++
  }

  async #update(tenant: number, id: number): Promise<void> {
    const amount = `${this.#random(100000)}.${10 + this.#random(90)}`
    await this.#proxy.on(tenant, async (client) => {
      await client.query('UPDATE orders SET amount = $3 WHERE tenant = $1 AND id = $2', [
        tenant,
        id,
        amount,
      ])
    })
    const row = this.model.get(`${tenant}/${id}`)
    if (row) row.amount = amount
    this.committed++
  }

  async #delete(tenant: number, id: number): Promise<void> {
    await this.#proxy.on(tenant, async (client) => {
      await client.query('DELETE FROM orders WHERE tenant = $1 AND id = $2', [tenant, id])
    })
    this.model.delete(`${tenant}/${id}`)
    this.committed++
  }

  /** The key changes within its tenant, large value unchanged. */
  async #rekey(tenant: number, id: number): Promise<void> {
    const row = this.model.get(`${tenant}/${id}`)
    if (!row) return
    await this.#proxy.on(tenant, async (client) => {
      await client.query('DELETE FROM lines WHERE tenant = $1 AND order_id = $2', [tenant, id])
      await client.query('UPDATE orders SET id = id + 1000000 WHERE tenant = $1 AND id = $2', [
        tenant,
        id,
      ])
    })
    this.model.delete(`${tenant}/${id}`)
    this.model.set(`${tenant}/${id + 1000000}`, row)
    this.committed++
  }

  async #country(): Promise<void> {
    const code = String.fromCharCode(65 + this.#random(26), 65 + this.#random(26))
    const name = `land ${this.#random(1000)} of ${code}`
    await this.#proxy.everywhere(
      'INSERT INTO country VALUES ($1, $2) ON CONFLICT (code) DO UPDATE SET name = excluded.name',
      [code, name],
    )
    this.countries.set(code, name)
    this.committed++
  }
}

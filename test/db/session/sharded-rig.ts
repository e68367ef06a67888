/** Three shards on one PostgreSQL 15 behind serve, with schema pgshard, and a client that writes its own frames. */
import { connect, type Socket } from 'node:net'
import type pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { decodeErrorFields } from '../../../src/wire/error-response.js'
import { FrameReader } from '../../../src/wire/frame-reader.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { encodeBind } from '../../../src/wire/frontend-messages.js'
import { backend, frontend } from '../../../src/wire/tags.js'
import { runCli } from '../../support/run-cli.js'
import { type Served, type ServeSetup, startServe, writeServeConfig } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

export const SHARDS = 3

const tables = ['item', 'late', 'late2', 'big', 'country']
  .map((name) =>
    name === 'country'
      ? '[[omnisharded_tables]]\ndatabase = "app"\ntables = ["country"]'
      : `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "k"`,
  )
  .join('\n')

/** `late` holds a constraint that is looked at when the transaction commits. */
const schema = `
create table item (k bigint, id int, v text, primary key (k, id));
create table late (k bigint, n int, unique (k, n) deferrable initially deferred);
create table late2 (k bigint);
create unlogged table big (k bigint, n int);
create table country (code text primary key);
insert into country values ('de'), ('fr')`

export interface ShardedRig {
  readonly served: Served
  readonly databases: readonly string[]
  /** Of the PostgreSQL that holds the shards. */
  readonly plainPort: number
  /** The nth key of a shard. */
  key(shard: number, nth?: number): number
  onShard(shard: number, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Another serve before the same shards. */
  another(...args: string[]): Promise<Served>
  /** On every shard, past the proxy. */
  everywhere(sql: string): Promise<Record<string, unknown>[][]>
}

/** Starts it for a describe block; `addresses` may put something between serve and a shard. */
export function useShardedRig(
  general: readonly string[] = [],
  options: {
    user?: readonly string[]
    addresses?: (shards: ServeSetup['shards']) => Promise<ServeSetup['shards']>
  } = {},
): () => ShardedRig {
  const postgres = usePostgres({ version: 15 })
  let rig: ShardedRig | undefined
  const clients: pg.Client[] = []

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const databases: string[] = []
    const keys: number[][] = []
    for (let shard = 0; shard < SHARDS; shard++) {
      databases.push(await postgres().createDatabase())
      clients.push(await postgres().connect(0, databases[shard]))
      await clients[shard]!.query(schema)
      keys.push(await keysOf(clients[shard]!, shard))
    }
    const direct = databases.map((database) => ({ host, port, database }))
    const plain: ServeSetup = { shards: direct, tables, general, user: options.user ?? [] }
    const files = writeServeConfig(plain)
    const setup = await runCli(['setup', '-c', files.configPath, '-u', files.usersPath])
    if (setup.code !== 0) throw new Error(`setup failed: ${setup.stderr}`)
    const shards = (await options.addresses?.(direct)) ?? direct
    const onShard: ShardedRig['onShard'] = async (shard, sql, values = []) =>
      (await clients[shard]!.query(sql, values)).rows
    rig = {
      served: await startServe({ ...plain, shards }),
      databases,
      plainPort: port,
      key: (shard, nth = 0) => keys[shard]![nth]!,
      onShard,
      another: (...args) => startServe({ ...plain, shards, args }),
      everywhere: (sql) => Promise.all(databases.map((_, shard) => onShard(shard, sql))),
    }
  })
  afterAll(() => Promise.all(clients.map((client) => client.end().catch(() => undefined))))
  return () => rig!
}

async function keysOf(client: pg.Client, shard: number): Promise<number[]> {
  await client.query(
    'create temp table h (k bigint) partition by hash (k);' +
      `create temp table h0 partition of h for values with (modulus ${SHARDS}, remainder 0)`,
  )
  const { rows } = await client.query<{ k: number }>(
    `select k::int from generate_series(1, 300) k
     where satisfies_hash_partition('h'::regclass, ${SHARDS}, ${shard}, k::bigint) order by k`,
  )
  return rows.map(({ k }) => k)
}

/** SQLSTATE and message of a statement that must fail. */
export async function failure(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (error === undefined) throw new Error('it did not fail')
  const { code, message } = error as { code?: string; message: string }
  return `${code} ${message}`
}

/** A client of plain frames: what it sends, and what it hears, in short form. */
export class RawClient {
  readonly #socket: Socket
  /** `Z I`, `C SELECT 1`, `E 22012 …`, `D a,b`, and bare tags for the rest. */
  readonly heard: string[] = []
  bytesHeard = 0
  #writer = new FrameWriter()

  private constructor(socket: Socket, keepsRows: boolean) {
    this.#socket = socket
    const reader = new FrameReader((tag, buffer, start, end) => {
      if (tag === backend.dataRow && !keepsRows) return
      this.heard.push(shortForm(tag, buffer.subarray(start + 5, end)))
    })
    socket.on('data', (chunk: Buffer) => {
      this.bytesHeard += chunk.length
      reader.push(chunk)
    })
    socket.on('error', () => undefined)
  }

  static async open(port: number, keepsRows = true, database = 'app'): Promise<RawClient> {
    const socket = connect(port, '127.0.0.1')
    const client = new RawClient(socket, keepsRows)
    const body = Buffer.from(`\0\x03\0\0user\0postgres\0database\0${database}\0\0`, 'latin1')
    const size = Buffer.alloc(4)
    size.writeInt32BE(body.length + 4)
    socket.write(Buffer.concat([size, body]))
    await client.until((one) => one === 'Z I')
    client.heard.length = 0
    return client
  }

  get socket(): Socket {
    return this.#socket
  }

  query(sql: string): this {
    this.#writer.begin(frontend.query).cstring(sql).end()
    return this
  }

  parse(name: string, sql: string): this {
    this.#writer.begin(frontend.parse).cstring(name).cstring(sql).int16(0).end()
    return this
  }

  bind(name: string, ...values: (string | number)[]): this {
    const bytes = values.map((value) => Buffer.from(String(value)))
    encodeBind(this.#writer, {
      portal: '',
      statement: name,
      formats: [],
      values: bytes,
      resultFormats: [],
    })
    return this
  }

  describe(what: 'S' | 'P', name = ''): this {
    this.#writer.begin(frontend.describe).byte(what.charCodeAt(0)).cstring(name).end()
    return this
  }

  execute(rows = 0): this {
    this.#writer.begin(frontend.execute).cstring('').int32(rows).end()
    return this
  }

  sync(): this {
    this.#writer.begin(frontend.sync).end()
    return this
  }

  flush(): this {
    this.#writer.begin(frontend.flush).end()
    return this
  }

  /** All that was gathered, in one write. */
  send(): this {
    this.#socket.write(this.#writer.take())
    this.#writer = new FrameWriter()
    return this
  }

  until(condition: (last: string) => boolean): Promise<unknown> {
    return waitFor(() => this.heard.some(condition), {
      what: `an answer among ${this.heard.join(' | ')}`,
    })
  }

  /** Sends what was gathered and gives what is heard up to the nth ReadyForQuery. */
  async answers(readies = 1): Promise<string[]> {
    this.heard.length = 0
    this.send()
    const count = () => this.heard.filter((one) => one.startsWith('Z')).length
    await waitFor(() => count() >= readies, { what: `${readies} ReadyForQuery` }).catch((error) => {
      throw new Error(`heard only ${this.heard.join(' | ')}`, { cause: error })
    })
    return this.heard.splice(0)
  }

  end(): void {
    this.#socket.destroy()
  }
}

function shortForm(tag: number, body: Buffer): string {
  const letter = String.fromCharCode(tag)
  switch (tag) {
    case backend.readyForQuery:
      return `Z ${body.toString('latin1', 0, 1)}`
    case backend.commandComplete:
      return `C ${body.toString('utf8', 0, body.length - 1)}`
    case backend.errorResponse: {
      const fields = decodeErrorFields(body)
      return `E ${fields['C']} ${fields['M']}`
    }
    case backend.dataRow:
      return `D ${rowText(body)}`
    default:
      return letter
  }
}

function rowText(body: Buffer): string {
  const values: string[] = []
  for (let at = 2; at < body.length; ) {
    const length = body.readInt32BE(at)
    values.push(length < 0 ? 'NULL' : body.toString('utf8', at + 4, at + 4 + length))
    at += 4 + Math.max(length, 0)
  }
  return values.join(',')
}

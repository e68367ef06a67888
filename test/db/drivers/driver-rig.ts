/**
 * The same work of a client library three times: directly on PostgreSQL, and through serve with small pools in
 * transaction mode. What it printed or returned must be the same; direct PostgreSQL is the oracle.
 */
import { execFile } from 'node:child_process'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect } from 'vitest'
import { startServe } from '../../support/serve.js'
import { bySize } from '../../support/test-size.js'
import { findTool } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'

/** A place where the work can be done. */
export interface Target {
  readonly name: 'direct' | `pool of ${number}`
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  /** postgres://user@host:port/database */
  readonly url: string
}

export interface DriverRig {
  /** Direct first. */
  readonly targets: readonly Target[]
  /** Does the work at every target, one after the other; fails where it differs from direct. Returns what direct gave. */
  same<T>(work: (target: Target) => Promise<T>): Promise<T>
  /** Statements that prepare each target's database, sent directly. */
  prepare(sql: string): Promise<void>
}

const POOL_SIZES = bySize([1, 2], [1, 2, 4])
const USER = 'postgres'

/** Servers for a file of tests: one PostgreSQL with a database for each target, and two serves. */
export function useDriverRig(general: readonly string[] = []): () => DriverRig {
  const postgres = usePostgres({ version: 15 })
  let rig: DriverRig | undefined
  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const databases = [postgres().database]
    const addressOf = (name: Target['name'], port: number, database: string): Target => ({
      name,
      host,
      port,
      database,
      user: USER,
      url: `postgres://${USER}@${host}:${port}/${database}`,
    })
    const targets = [addressOf('direct', port, postgres().database)]
    for (const size of POOL_SIZES) {
      const database = await postgres().createDatabase()
      databases.push(database)
      const served = await startServe({
        shards: [{ host, port, database }],
        database,
        general: [`default_pool_size = ${size}`, 'checkout_timeout = 20000', ...general],
      })
      targets.push(addressOf(`pool of ${size}`, served.port, database))
    }
    const same = async <T>(work: (target: Target) => Promise<T>): Promise<T> => {
      const expected = await work(targets[0]!)
      for (const target of targets.slice(1))
        expect(await work(target), `through the ${target.name}`).toEqual(expected)
      return expected
    }
    const prepare = async (sql: string) => {
      for (const database of databases) {
        const client = await postgres().connect(0, database)
        await client.query(sql)
        await client.end()
      }
    }
    rig = { targets, same, prepare }
  })
  return () => {
    if (!rig) throw new Error('the targets are made in beforeAll; they are not there yet')
    return rig
  }
}

export const driverFixtures = resolve(
  dirname(fileURLToPath(import.meta.url)),
  '../../../fixtures/drivers',
)

export interface ProgramResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end without blocking; it is killed after a minute. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; input?: string; timeoutMs?: number } = {},
): Promise<ProgramResult> {
  const path = program.startsWith('/') ? program : (findTool(program) ?? program)
  return new Promise((resolve) => {
    const child = execFile(
      path,
      args,
      {
        env: { ...process.env, LC_ALL: 'C.UTF-8', ...options.env },
        timeout: options.timeoutMs ?? 60_000,
        maxBuffer: 64 << 20,
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null
        resolve({ code, stdout, stderr })
      },
    )
    child.stdin?.on('error', () => undefined) // it may end before it has read all
    child.stdin?.end(options.input ?? '')
  })
}

/** Runs a program of Debian's python3 with `host port user database` as its arguments. */
export function runPython(file: string, target: Target): Promise<ProgramResult> {
  const { host, port, user, database } = target
  return runProgram('/usr/bin/python3', [
    join(driverFixtures, file),
    host,
    String(port),
    user,
    database,
  ])
}

/** `-h … -p … -U …` and the database last. */
export const placeOf = (target: Target): string[] => [
  '-h',
  target.host,
  '-p',
  String(target.port),
  '-U',
  target.user,
]

/**
 * The schema of a source as SQL, in the two sections of pg_dump: by the pg_dump on PATH when its version fits the
 * server, else by the one in npm. What the targets' versions do not know is dropped knowingly; ours is left out.
 */
import { spawn } from 'node:child_process'
import { engineError } from '../../errors/engine-error.js'
import type { HostTarget } from '../../pg/host-client.js'
import { placeOf } from '../side.js'
import { dumpInWorker } from './dump-worker.js'

export interface SchemaDump {
  /** `pg_dump 15.18` or `pg_dump 18 of npm`. */
  readonly by: string
  /** Schemas, types, functions, tables without keys. One text, fit for one implicit transaction. */
  readonly before: string
  readonly after: readonly SchemaEntry[]
}

/** One object of the post-data section. */
export interface SchemaEntry {
  /** pg_dump's word: CONSTRAINT, FK CONSTRAINT, INDEX, TRIGGER… */
  readonly type: string
  readonly name: string
  readonly sql: string
}

export interface DumpOptions {
  /** Major version of the source and the lowest of the targets. */
  readonly sourceMajor: number
  readonly targetMajor: number
  /** Program to try first; `null` goes straight to the one in npm. */
  readonly program?: string | null
}

const shared = [
  '--schema-only',
  '--no-publications',
  '--no-subscriptions',
  '--exclude-schema=pgshard',
]

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function run(program: string, args: readonly string[], password?: string): Promise<Ended> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...(password === undefined ? {} : { PGPASSWORD: password }) }
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
    child.on('error', (error) => resolve({ code: -1, stdout: '', stderr: error.message }))
    child.on('close', (code) =>
      resolve({ code, stdout: String(Buffer.concat(out)), stderr: String(Buffer.concat(err)) }),
    )
  })
}

/** The version of the program when it can dump a server of `sourceMajor`; undefined otherwise. */
async function fittingVersion(program: string, sourceMajor: number): Promise<string | undefined> {
  const { code, stdout } = await run(program, ['--version'])
  const version = /\) (\d+)(\.\d+)?/.exec(stdout)
  if (code !== 0 || !version) return undefined
  return Number(version[1]) >= sourceMajor ? `${version[1]}${version[2] ?? ''}` : undefined
}

async function dumpWithProgram(
  program: string,
  target: HostTarget,
  section: string,
): Promise<string> {
  const where = ['-h', target.host, '-p', String(target.port), '-U', target.user]
  const args = [...shared, section, '--no-password', ...where, target.database]
  const { code, stdout, stderr } = await run(program, args, target.password)
  if (code === 0) return stdout
  const reason = stderr.trim().split('\n').at(-1) ?? `exit code ${code}`
  throw engineError('RESHARD_SCHEMA_DUMP', { server: placeOf(target), reason })
}

/** Dumps both sections. @throws RESHARD_SCHEMA_DUMP */
export async function dumpSchema(target: HostTarget, options: DumpOptions): Promise<SchemaDump> {
  const program = options.program === undefined ? 'pg_dump' : options.program
  const version = program === null ? undefined : await fittingVersion(program, options.sourceMajor)
  const dump = (section: string): Promise<string> =>
    program !== null && version !== undefined
      ? dumpWithProgram(program, target, section)
      : dumpInWorker(target, [...shared, section])
  const before = await dump('--section=pre-data')
  const after = await dump('--section=post-data')
  return {
    by: version === undefined ? 'pg_dump 18 of npm' : `pg_dump ${version}`,
    before: fitted(before, options.targetMajor),
    after: splitEntries(fitted(after, options.targetMajor)).filter(
      (entry) => !(entry.type === 'TRIGGER' && entry.name.endsWith(' pgshard_fence')),
    ),
  }
}

/** Without psql's \restrict lines, and without the settings that the targets do not know. */
export function fitted(sql: string, targetMajor: number): string {
  const lines = sql.replace(/^\\(un)?restrict .*$/gm, '')
  return targetMajor >= 17 ? lines : lines.replace(/^SET transaction_timeout = .*;$/gm, '')
}

const header = /^--\n-- Name: (.*); Type: ([A-Z ]+); Schema: .*\n--\n/gm

/** Cuts a plain dump at pg_dump's headings. What stands before the first one (settings) is left to the caller. */
export function splitEntries(sql: string): SchemaEntry[] {
  const heads = [...sql.matchAll(header)]
  const end = /^--\n-- PostgreSQL database dump complete$/m.exec(sql)?.index ?? sql.length
  return heads.map((head, i) => ({
    name: head[1] as string,
    type: head[2] as string,
    sql: sql.slice(head.index + head[0].length, heads[i + 1]?.index ?? end).trim(),
  }))
}

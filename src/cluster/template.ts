/** An initdb'd data directory per version, made once and cloned for every server: a clone takes a tenth of an initdb. */
import { appendFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { type Binaries, buildKey } from './binaries.js'
import { cacheDirectory, cached } from './cache-directory.js'
import { giveTo, runAs, type ServerUser } from './run-as.js'

export const SUPERUSER = 'postgres'
/** Our settings, included at the end of postgresql.conf. */
export const SETTINGS_FILE = 'pgshard.conf'

const HOST_RULES = [
  'local all all',
  'host all all 127.0.0.1/32',
  'local replication all',
  'host replication all 127.0.0.1/32',
]

/** The lines of pg_hba.conf: `trust` or `scram-sha-256` for everyone on this machine. */
export const hostRules = (method: string): string =>
  `${HOST_RULES.map((rule) => `${rule} ${method}`).join('\n')}\n`

function initialize(binaries: Binaries, user: ServerUser, data: string): void {
  mkdirSync(data, { mode: 0o700 })
  giveTo(user, data)
  const common = ['-D', data, '-U', SUPERUSER, '-A', 'trust', '-E', 'UTF8', '--no-sync', '-k']
  const initdb = join(binaries.binDirectory, 'initdb')
  let result = runAs(user, initdb, [...common, '--locale=C.UTF-8'])
  // C sorts as C.UTF-8 does; some systems do not have the latter
  if (result.status !== 0) result = runAs(user, initdb, [...common, '--locale=C'])
  if (result.status !== 0)
    throw engineError('CLUSTER_INITDB', {}, { detail: (result.stderr || result.stdout).trim() })
  appendFileSync(join(data, 'postgresql.conf'), `\ninclude_if_exists = '${SETTINGS_FILE}'\n`)
  writeFileSync(join(data, 'pg_hba.conf'), hostRules('trust'))
}

/** Path of a stopped data directory with no database of ours in it. @throws CLUSTER_INITDB */
export function template(binaries: Binaries, user: ServerUser, clock: Clock): string {
  const key = buildKey(binaries.binDirectory)
  const name = `template-${binaries.version}-${key}-${user?.uid ?? 'own'}`
  const made = cached(cacheDirectory(user), name, clock, (path) =>
    initialize(binaries, user, join(path, 'data')),
  )
  return join(made, 'data')
}

/** Copies a stopped data directory with its owners; blocks are shared where the file system can. */
export function cloneDirectory(from: string, to: string): void {
  const flags = process.platform === 'linux' ? ['-a', '--reflink=auto'] : ['-a']
  const result = runAs(undefined, '/bin/cp', [...flags, from, to])
  if (result.status === 0) return
  const plain = runAs(undefined, '/bin/cp', ['-a', from, to]) // a cp without --reflink
  if (plain.status !== 0) cpSync(from, to, { recursive: true, preserveTimestamps: true })
}

/** Runs statements, one a line, in a stopped data directory. */
export function runSingleUser(
  binaries: Binaries,
  user: ServerUser,
  data: string,
  statements: readonly string[],
): void {
  const parameters = ['--single', '-D', data, '-c', 'log_min_messages=error', 'postgres']
  const postgres = join(binaries.binDirectory, 'postgres')
  const result = runAs(user, postgres, parameters, `${statements.join('\n')}\n`)
  if (result.status !== 0 || /\b(ERROR|FATAL|PANIC):/.test(result.stderr))
    throw engineError('CLUSTER_INITDB', {}, { detail: result.stderr.trim() })
}

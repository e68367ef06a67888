/**
 * The user that PostgreSQL servers run as: ourselves, or an unprivileged one when we are root.
 * Every program of a server is started here, from / and with a clean environment, so that neither
 * an unreadable working directory nor PG* variables reach it.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chownSync, readFileSync } from 'node:fs'
import { engineError } from '../errors/engine-error.js'

/** Undefined: the servers run as the user that we are. */
export type ServerUser = { name: string; uid: number; gid: number } | undefined

const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' }

/** The user to run servers as. @throws CLUSTER_NO_USER */
export function serverUser(): ServerUser {
  if (process.getuid?.() !== 0) return undefined
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const wanted of ['postgres', 'nobody']) {
    const line = accounts.find((account) => account.startsWith(`${wanted}:`))
    const [name, , uid, gid] = line?.split(':') ?? []
    if (name && Number(uid) > 0) return { name, uid: Number(uid), gid: Number(gid) }
  }
  throw engineError('CLUSTER_NO_USER')
}

const identity = (user: ServerUser) => (user ? { uid: user.uid, gid: user.gid } : {})

/** Runs a program to its end as `user`; `input` goes to its standard input. */
export function runAs(
  user: ServerUser,
  program: string,
  parameters: readonly string[],
  input?: string,
): { status: number; stdout: string; stderr: string } {
  const result = spawnSync(program, parameters, {
    cwd: '/',
    env: environment,
    encoding: 'utf8',
    maxBuffer: 16_777_216,
    ...(input === undefined ? {} : { input }),
    ...identity(user),
  })
  const stderr = result.error ? result.error.message : result.stderr
  return { status: result.status ?? 1, stdout: result.stdout ?? '', stderr }
}

/** Starts a server that outlives us; its output goes to the open file `logFd`. */
export function spawnServer(
  user: ServerUser,
  program: string,
  parameters: readonly string[],
  logFd: number,
): ChildProcess {
  const child = spawn(program, parameters, {
    cwd: '/',
    env: environment,
    detached: true,
    stdio: ['ignore', logFd, logFd],
    ...identity(user),
  })
  child.unref()
  return child
}

/** Whether `user` may read every file named (and thus enter the directories above). */
export function canRead(user: ServerUser, files: readonly string[]): boolean {
  const script = 'for f; do test -r "$f" || exit 1; test ! -d "$f" -o -x "$f" || exit 1; done'
  return runAs(user, '/bin/sh', ['-c', script, 'sh', ...files]).status === 0
}

/** Gives a file or directory to `user`. */
export function giveTo(user: ServerUser, path: string): void {
  if (user) chownSync(path, user.uid, user.gid)
}

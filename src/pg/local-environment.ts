/** What connection strings lean on, from this machine: PG* variables, the user's name, service and password files. */

import { lookup } from 'node:dns/promises'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import type { ConninfoEnvironment } from '../topology/conninfo.js'

const socketDirectories = ['/var/run/postgresql', '/tmp']

function defaultHost(port: string): string {
  const found = socketDirectories.find((path) => existsSync(`${path}/.s.PGSQL.${port}`))
  return found ?? 'localhost'
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'postgres' // a container may run under a number without a name
  }
}

/** As libpq: a password file that others may read is not used, with a warning. */
function mayUse(path: string, warn: (message: string) => void): boolean {
  const stat = statSync(path)
  if (!stat.isFile()) return false
  if ((stat.mode & 0o077) === 0 || process.platform === 'win32') return true
  warn(
    `password file "${path}" has group or world access; permissions should be u=rw (0600) or less`,
  )
  return false
}

/** The environment of this process. `variables` may be replaced, for tests and for flags. */
export function localEnvironment(
  variables: Readonly<Record<string, string | undefined>> = process.env,
  warn: (message: string) => void = () => undefined,
): ConninfoEnvironment {
  return {
    variables,
    userName: userName(),
    homeDirectory: variables['HOME'] ?? homedir(),
    defaultHost: defaultHost(variables['PGPORT'] ?? '5432'),
    readFile: (path, kind) => {
      try {
        if (kind === 'passfile' && !mayUse(path, warn)) return undefined
        return readFileSync(path, 'utf8')
      } catch {
        return undefined
      }
    },
  }
}

/** Addresses of a name in the order of the machine's resolver, both families. */
export async function resolveHost(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true, verbatim: true })
  return found.map((entry) => entry.address)
}

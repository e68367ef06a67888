/**
 * A place under the temporary directory for things that are made once and used by many clusters:
 * readable copies of the binaries and initdb'd templates. Made under another name and moved into
 * place, so that two processes at once, or a crash half way, leave a whole thing or nothing.
 */
import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { canRead, type ServerUser } from './run-as.js'

/** Cleaners of temporary directories take files that were not touched for ten days; we make anew before. */
const MAX_AGE_MS = 3 * 86_400_000
const DONE = '.complete'

/** A temporary directory that `user` may enter: the usual one, else /tmp, else /var/tmp. */
export function sharedTemporaryDirectory(user: ServerUser): string {
  const candidates = [tmpdir(), '/tmp', '/var/tmp']
  return candidates.find((directory) => canRead(user, [directory])) ?? tmpdir()
}

/** Our cache directory, made when missing; refuses one that belongs to someone else. @throws CLUSTER_DIRECTORY */
export function cacheDirectory(user: ServerUser): string {
  const uid = process.getuid?.() ?? 0
  const directory = join(sharedTemporaryDirectory(user), `pgshard-cache-${uid}`)
  if (mkdirSync(directory, { recursive: true })) chmodSync(directory, 0o755)
  const found = lstatSync(directory)
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o022) !== 0)
    throw engineError(
      'CLUSTER_DIRECTORY',
      { directory },
      { detail: 'it exists and belongs to someone else', hint: 'remove it, or set TMPDIR' },
    )
  return directory
}

const isFresh = (path: string, clock: Clock): boolean => {
  try {
    return clock.nowMs() - statSync(join(path, DONE)).mtimeMs < MAX_AGE_MS
  } catch {
    return false
  }
}

/** Path of the cached thing `name`; `make` fills an empty directory when it is not there or too old. */
export function cached(
  directory: string,
  name: string,
  clock: Clock,
  make: (path: string) => void,
): string {
  const path = join(directory, name)
  if (isFresh(path, clock)) return path
  const building = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.new`
  mkdirSync(building)
  chmodSync(building, 0o755) // whatever our umask says
  try {
    make(building)
    writeFileSync(join(building, DONE), '')
    moveIntoPlace(building, path, clock)
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  removeLeftovers(directory, name, clock)
  return path
}

function moveIntoPlace(building: string, path: string, clock: Clock): void {
  for (let attempt = 0; ; attempt++) {
    try {
      renameSync(building, path)
      return
    } catch (error) {
      if (isFresh(path, clock)) return // another process was faster
      if (attempt === 5) throw error
      const old = `${path}.${randomBytes(4).toString('hex')}.old`
      try {
        renameSync(path, old)
      } catch {
        continue // another process took it away
      }
      rmSync(old, { recursive: true, force: true })
    }
  }
}

/** Half-made things of processes that died, an hour old or more. */
function removeLeftovers(directory: string, name: string, clock: Clock): void {
  for (const entry of readdirSync(directory)) {
    if (!entry.startsWith(`${name}.`) || !/\.(new|old)$/.test(entry)) continue
    const path = join(directory, entry)
    try {
      if (clock.nowMs() - statSync(path).mtimeMs > 3_600_000)
        rmSync(path, { recursive: true, force: true })
    } catch {
      // gone already
    }
  }
}

/** Eight characters that stand for a text in a file name. */
export const shortHash = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 8)

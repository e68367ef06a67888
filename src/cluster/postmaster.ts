/**
 * Is the server of a data directory running, and is it really ours? Read from postmaster.pid (its
 * lines: process id, data directory, start time, port, socket directory, listen address, shared
 * memory key, status; src/include/utils/pidfile.h of PostgreSQL) and checked against the process
 * itself, so that a reused process id is never taken for a server, and never signalled.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

export interface Postmaster {
  pid: number
  port: number
  /** When the process began, in the system's own words; equal for the same process only. */
  startedAt: string
  /** It accepts connections (a primary, or a replica that is consistent). */
  ready: boolean
}

/** Arguments of a process, or undefined when it is gone. */
function commandLine(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return text === '' ? undefined : text.split('\0')
  } catch {
    if (process.platform === 'linux') return undefined
  }
  const shown = spawnSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
  return shown.status === 0 ? shown.stdout.trim().split(/\s+/) : undefined
}

/** When a process began: clock ticks after boot on Linux, the date that ps prints elsewhere. */
export function processStart(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ') // from field 3; the name may hold blanks
    return fields[0] === 'Z' ? undefined : fields[19] // a zombie has ended
  } catch {
    if (process.platform === 'linux') return undefined
  }
  const shown = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' })
  return shown.status === 0 ? shown.stdout.trim() : undefined
}

const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** The running postmaster of this data directory, or undefined. */
export function findPostmaster(dataDirectory: string): Postmaster | undefined {
  let lines: string[]
  try {
    lines = readFileSync(join(dataDirectory, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return undefined
  }
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 1) return undefined
  const words = commandLine(pid)
  const directory = words?.[words.indexOf('-D') + 1]
  if (!directory || real(directory) !== real(dataDirectory)) return undefined
  const startedAt = processStart(pid)
  if (startedAt === undefined) return undefined
  return { pid, port: Number(lines[3]), startedAt, ready: lines[7]?.trim() === 'ready' }
}

/** Whether `found` is still the same process. */
export const isAlive = (found: Postmaster): boolean => processStart(found.pid) === found.startedAt

/**
 * Processes of a server whose postmaster died before them: they work in its data directory.
 * Known on Linux only; elsewhere PostgreSQL's own check of the shared memory stands alone.
 */
export function orphans(dataDirectory: string): number[] {
  if (process.platform !== 'linux') return []
  const wanted = real(dataDirectory)
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => {
      try {
        if (readlinkSync(`/proc/${pid}/cwd`) !== wanted) return false
        return commandLine(pid)?.[0]?.startsWith('postgres') ?? false
      } catch {
        return false
      }
    })
}

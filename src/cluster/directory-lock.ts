/** One pgshard at a time works on a cluster's directory. A lock whose process died is taken over. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { processStart } from './postmaster.js'

const WAIT_MS = 120_000

const ourselves = (): string => `${process.pid} ${processStart(process.pid)}`

const holderIsAlive = (holder: string): boolean => {
  const [pid = '', ...start] = holder.split(' ')
  return processStart(Number(pid)) === start.join(' ')
}

/** Runs `work` while no other process works on `directory`; waits for one that does. @throws CLUSTER_BUSY */
export async function withLock<T>(
  directory: string,
  clock: Clock,
  work: () => Promise<T>,
): Promise<T> {
  const file = join(directory, 'cluster.lock')
  const deadline = clock.monotonicMs() + WAIT_MS
  while (!tryLock(file)) {
    if (clock.monotonicMs() > deadline)
      throw engineError('CLUSTER_BUSY', { pid: holderOf(file).split(' ')[0] ?? '', directory })
    await clock.sleep(50)
  }
  try {
    return await work()
  } finally {
    rmSync(file, { force: true })
  }
}

function holderOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function tryLock(file: string): boolean {
  try {
    writeFileSync(file, ourselves(), { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const holder = holderOf(file)
  // an empty file was created a moment ago and not written yet
  if (holder === '' || holderIsAlive(holder)) return false
  const stale = `${file}.${process.pid}.stale`
  try {
    renameSync(file, stale) // of several who saw the dead holder one gets it
    if (readFileSync(stale, 'utf8') !== holder)
      renameSync(stale, file) // it was a new lock: put it back
    else rmSync(stale)
  } catch {
    // another process was faster
  }
  return false
}

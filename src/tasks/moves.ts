/**
 * Moves that the console starts. Each is a process of its own, `pgshard reshard …`, so that its work takes no time of the
 * proxy's and outlives it; all that the console says of it is read from the journals, so that tasks of other proxies and
 * of the command line are seen, stopped and switched as well.
 */
import type { MoveControl } from '../admin/move-control.js'
import type { MoveKind } from '../admin/parse-move.js'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { type MoveConfig, sideOf } from '../reshard/configured-side.js'
import { changeSetting, requestStop } from '../reshard/guards/sample-store.js'
import { type KnownTask, readMoves } from './read-moves.js'
import { startTask, type TaskFiles, type TaskProcess } from './task-process.js'

export interface MovesOptions {
  readonly clock: Clock
  readonly config: () => MoveConfig & { readonly files: readonly string[] }
  /** Where the console listens. */
  readonly address: () => { readonly host: string; readonly port: number }
}

const BEGIN_MS = 60_000
const POLL_MS = 150

/** States in which nothing is left to do. */
const over = new Set(['cut_over', 'cleaned', 'rolled_back'])
const commandOf: Readonly<Record<MoveKind, readonly string[]>> = {
  reshard: ['run'],
  schema_sync: ['schema'],
  copy_data: ['follow'],
  replicate: ['follow'],
}

export function makeMoves(options: MovesOptions): MoveControl {
  const { clock } = options
  const look = () => readMoves(options.config())
  const find = async (id: string): Promise<KnownTask> => {
    const task = (await look()).tasks.find((one) => one.id === id)
    if (!task) throw engineError('ADMIN_NO_SUCH', { kind: 'task', name: id, where: 'SHOW TASKS' })
    return task
  }
  const latest = async (from: string, to: string): Promise<KnownTask | undefined> =>
    (await look()).tasks.find((task) => task.from === from && task.to === to)

  /** Starts a process for the move and waits until its run is seen at work. */
  const begin = async (words: readonly string[], from: string, to: string): Promise<string> => {
    const before = await latest(from, to)
    const started = startTask(filesOf(options), [...words, '--from', from, '--to', to, '--yes'])
    const deadlineMs = clock.monotonicMs() + BEGIN_MS
    while (clock.monotonicMs() < deadlineMs) {
      const now = await latest(from, to)
      const isAtWork = now && (now.id !== before?.id || now.updatedAtMs !== before.updatedAtMs)
      if (isAtWork) return now.id
      if (started.ended()) return idOfEnded(started, now, words.join(' '))
      await clock.sleep(POLL_MS)
    }
    throw engineError('ADMIN_TASK', {
      what: words.join(' '),
      reason: 'it has not begun within a minute',
    })
  }

  const stop = async (task: KnownTask): Promise<void> => {
    if (task.isResting) return
    await requestStop(sideOf(options.config(), task.home), task.id)
    const deadlineMs = clock.monotonicMs() + BEGIN_MS
    while (clock.monotonicMs() < deadlineMs) {
      const now = await find(task.id)
      if (now.isResting) return
      await clock.sleep(POLL_MS)
    }
    throw engineError('ADMIN_TASK', {
      what: 'STOP_TASK',
      reason: 'the task has not ended within a minute',
    })
  }

  return {
    begin: async (kind, from, to) => {
      for (const name of [from, to]) sideOf(options.config(), name)
      return begin(commandOf[kind], from, to)
    },
    cutover: async (id) => {
      const task = id === undefined ? await onlyTask(look) : await find(id)
      if (over.has(task.state)) {
        throw engineError('ADMIN_TASK', {
          what: 'CUTOVER',
          reason: `task ${task.id} is ${task.state}`,
        })
      }
      await stop(task)
      return begin(['resume'], task.from, task.to)
    },
    stop: async (id) => stop(await find(id)),
    set: async (name, value) => {
      const tasks = (await look()).tasks.filter((task) => !over.has(task.state))
      if (tasks.length === 0) {
        throw engineError('ADMIN_NO_SUCH', { kind: 'task', name: 'any', where: 'SHOW TASKS' })
      }
      for (const task of tasks)
        await changeSetting(sideOf(options.config(), task.home), task.id, name, value)
    },
    look,
  }
}

/** @throws ADMIN_TASK when the process has failed */
function idOfEnded(ended: TaskProcess, task: KnownTask | undefined, what: string): string {
  if (ended.code() === 0 && task) return task.id
  throw engineError('ADMIN_TASK', { what, reason: ended.failure() })
}

/** The one task that follows. @throws ADMIN_TASK */
async function onlyTask(
  look: () => Promise<{ readonly tasks: readonly KnownTask[] }>,
): Promise<KnownTask> {
  const open = (await look()).tasks.filter((task) => !over.has(task.state))
  const [only] = open
  if (only && open.length === 1) return only
  const reason = only ? 'there are several tasks: name one of SHOW TASKS' : 'there is no task'
  throw engineError('ADMIN_TASK', { what: 'CUTOVER', reason })
}

/** @throws ADMIN_TASK without a file: a move rewrites it */
function filesOf({ config, address }: MovesOptions): TaskFiles {
  const { files, admin } = config()
  const [path, users] = files
  if (path === undefined) {
    const reason = 'a move rewrites the configuration file, and serve was started without one'
    throw engineError('ADMIN_TASK', { what: 'a move', reason })
  }
  const { host, port } = address()
  const loopback = ['0.0.0.0', '::', ''].includes(host) ? '127.0.0.1' : host
  const [user, name] = [
    encodeURIComponent(admin.user),
    encodeURIComponent(admin.names[0] ?? 'admin'),
  ]
  const at = loopback.includes(':') ? `[${loopback}]` : loopback
  return { config: path, users, consoleUrl: `postgres://${user}@${at}:${port}/${name}` }
}

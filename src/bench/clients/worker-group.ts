/** A group of clients in a worker thread, seen from the main thread. The messages are plain data; see worker-main.ts. */
import { Worker } from 'node:worker_threads'
import { type Deferred, deferred } from '../../base/deferred.js'
import { engineError } from '../../errors/engine-error.js'
import type { RunPlan } from '../run-plan.js'
import type { GroupSeeds, GroupTools } from './client-group.js'
import type { RunningGroup } from './run-group.js'
import { type GroupStats, type TransactionStats, transactionStats } from './stats.js'
import { decodeStats, type EncodedStats } from './stats-message.js'

/** What a worker is started with. */
export interface WorkerStart {
  readonly plan: RunPlan
  readonly seeds: GroupSeeds
}

export type ToWorker = 'connect' | 'run' | 'stop' | 'close'

export type FromWorker =
  | { readonly kind: 'log'; readonly message: string; readonly level: 'error' | 'info' }
  | { readonly kind: 'say'; readonly line: string }
  | { readonly kind: 'connected' }
  | { readonly kind: 'totals'; readonly totals: TransactionStats }
  | { readonly kind: 'finished'; readonly stats: EncodedStats }
  | { readonly kind: 'failed'; readonly message: string }

/** Starts the thread; it waits for `connect`. */
export function openWorkerGroup(plan: RunPlan, seeds: GroupSeeds, tools: GroupTools): RunningGroup {
  const start: WorkerStart = { plan, seeds }
  const worker = new Worker(new URL('./worker-main.js', import.meta.url), { workerData: start })
  const connected: Deferred<void> = deferred()
  const finished: Deferred<GroupStats> = deferred()
  connected.promise.catch(() => undefined)
  finished.promise.catch(() => undefined)
  let totals = transactionStats()
  const fail = (error: unknown) => {
    connected.reject(error)
    finished.reject(error)
  }
  worker.on('message', (message: FromWorker) => {
    if (message.kind === 'log') tools.log(message.message, message.level)
    else if (message.kind === 'say') tools.say(message.line)
    else if (message.kind === 'connected') connected.resolve()
    else if (message.kind === 'totals') totals = message.totals
    else if (message.kind === 'finished') finished.resolve(decodeStats(message.stats))
    else fail(engineError('CONNECT_FAILED', { message: message.message }))
  })
  worker.on('error', fail)
  worker.on('exit', () => fail(engineError('INTERNAL', { message: 'a worker thread ended early' })))
  const post = (message: ToWorker) => worker.postMessage(message)
  return {
    connect: async () => {
      post('connect')
      await connected.promise
    },
    run: async () => {
      post('run')
      return await finished.promise
    },
    totals: () => totals,
    stop: () => post('stop'),
    close: async () => {
      await worker.terminate()
    },
  }
}

/** Runs in a worker thread: one group of clients, driven by messages of worker-group.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../base/clock.js'
import { toEngineError } from '../../errors/engine-error.js'
import { openGroup } from './run-group.js'
import { encodeStats } from './stats-message.js'
import type { FromWorker, ToWorker, WorkerStart } from './worker-group.js'

const totalsEveryMs = 200
const { plan, seeds } = workerData as WorkerStart
const port = parentPort
if (port === null) throw new Error('worker-main.js is started by worker-group.js only')

const tell = (message: FromWorker) => port.postMessage(message)
const group = openGroup(plan, seeds, {
  clock: systemClock,
  log: (message, level) => tell({ kind: 'log', message, level: level ?? 'error' }),
  say: (line) => tell({ kind: 'say', line }),
})

function tellTotals(): void {
  tell({ kind: 'totals', totals: group.totals() })
  systemClock.after(totalsEveryMs, tellTotals)
}

async function obey(message: ToWorker): Promise<void> {
  if (message === 'stop') group.stop()
  else if (message === 'close') await group.close()
  else if (message === 'connect') {
    await group.connect()
    tell({ kind: 'connected' })
  } else {
    systemClock.after(totalsEveryMs, tellTotals)
    tell({ kind: 'finished', stats: encodeStats(await group.run()) })
  }
}

port.on('message', (message: ToWorker) => {
  obey(message).catch((error: unknown) =>
    tell({ kind: 'failed', message: toEngineError(error).message }),
  )
})

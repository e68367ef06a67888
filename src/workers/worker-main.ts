/** The process of a worker, started by worker-process.ts. It ends when its primary has gone: nobody would give it connections or limits. */
import type { AcceptedHandle } from '../net/adopt-accepted.js'
import { Link } from './link.js'
import type { ToPrimary, ToWorker } from './messages.js'
import { Worker } from './worker.js'

if (process.send === undefined)
  throw new Error('worker-main.js is started by worker-process.js only')

// A terminal or a supervisor sends signals to the whole group; the primary says what is to be done.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGUSR2'] as const)
  process.on(signal, () => undefined)
process.on('disconnect', () => process.exit(1))

let worker: Worker | undefined

const link = new Link<ToPrimary, ToWorker>({
  // A message that does not arrive is followed by 'disconnect'.
  send: (message) => void process.send?.(message, undefined, undefined, () => undefined),
  told: (what, handle) => {
    if (what.kind === 'start') void run(what.start)
    else worker?.told(what, handle)
  },
  asked: (what) => (what.kind === 'beat' ? undefined : worker?.asked(what)),
})
process.on('message', (message, handle) =>
  link.receive(message, handle as AcceptedHandle | undefined),
)

async function run(start: Extract<ToWorker['tell'], { kind: 'start' }>['start']): Promise<void> {
  worker = new Worker(link, start)
  const code = await worker.run().then(
    () => 0,
    () => 3,
  )
  // After everything said before it.
  process.send?.({ tell: undefined }, undefined, undefined, () => process.exit(code))
}

/**
 * Work of many that became due at one moment: one piece each turn of the event loop, in order, so that sockets are read
 * and answers leave between them.
 */
import { RingQueue } from './ring-queue.js'

const due = new RingQueue<() => void>()

function runOne(): void {
  const run = due.shift()
  // Before the work: what it throws is its own, the others still have their turn.
  if (due.size > 0) setImmediate(runOne)
  run?.()
}

/** Calls `run` in a later turn of the event loop, behind all that wait for theirs. */
export function takeTurn(run: () => void): void {
  if (due.size === 0) setImmediate(runOne)
  due.push(run)
}

/** Work that is joined: run once all sockets that are ready now have been read, before the next wait for them. */

let waiting: (() => void)[] = []

function runAll(): void {
  const due = waiting
  waiting = []
  for (const run of due) run()
}

/** Calls `run` after the reads of this turn of the event loop. */
export function atEndOfTick(run: () => void): void {
  if (waiting.length === 0) setImmediate(runAll)
  waiting.push(run)
}

/** Ctrl-C once: finish; twice: now. */
import { expect, test } from 'vitest'
import { interruptible } from '../../../src/cli/interrupt.js'

test('the first signal is soft, the second hard, and a disposed one hears nothing', () => {
  const before = process.listenerCount('SIGINT')
  const lines: string[] = []
  const events: string[] = []
  const job = interruptible({
    what: 'the batch',
    write: (line) => lines.push(line),
    stopNow: () => events.push('stop'),
    exit: (code) => events.push(`exit ${code}`),
  })
  expect(job.soft.aborted).toBe(false)
  process.emit('SIGINT')
  expect([job.soft.aborted, job.hard.aborted]).toEqual([true, false])
  expect(lines).toEqual(['pgshard: interrupted: finishing the batch; once more to stop now'])
  process.emit('SIGTERM')
  process.emit('SIGINT')
  expect(job.hard.aborted).toBe(true)
  expect(events).toEqual(['stop', 'exit 130'])
  job.dispose()
  expect(process.listenerCount('SIGINT')).toBe(before)
})

/** The ground: queue, clock, log, deferred. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { deferred } from '../../../src/base/deferred.js'
import { openLog, silentLog } from '../../../src/base/log.js'
import { RingQueue } from '../../../src/base/ring-queue.js'
import { takeTurn } from '../../../src/base/take-turns.js'

describe('RingQueue', () => {
  test('behaves as an array, through growth and turns', () => {
    const steps = fc.array(fc.oneof(fc.nat(), fc.constant('shift'), fc.constant('clear')), {
      maxLength: 200,
    })
    fc.assert(
      fc.property(steps, (all) => {
        const queue = new RingQueue<number>()
        let model: number[] = []
        for (const step of all) {
          if (step === 'shift') expect(queue.shift()).toBe(model.shift())
          else if (step === 'clear') {
            queue.clear()
            model = []
          } else {
            queue.push(step as number)
            model.push(step as number)
          }
          expect([...queue]).toEqual(model)
          expect(queue.size).toBe(model.length)
          expect(queue.peek()).toBe(model[0])
          expect(queue.at(model.length)).toBeUndefined()
        }
      }),
      { seed: 3 },
    )
  })
})

describe('systemClock', () => {
  test('runs after the delay, unless it was cancelled', async () => {
    const fired = deferred<number>()
    const startMs = systemClock.monotonicMs()
    systemClock.after(1, () => fired.reject(new Error('cancelled'))).cancel()
    systemClock.after(15, () => fired.resolve(systemClock.monotonicMs() - startMs))
    const keepAlive = setTimeout(() => undefined, 2000)
    expect(await fired.promise).toBeGreaterThanOrEqual(14)
    clearTimeout(keepAlive)
  })

  test('an unlimited delay never fires at once', async () => {
    let fired = false
    const timer = systemClock.after(Number.POSITIVE_INFINITY, () => {
      fired = true
    })
    await systemClock.sleep(5)
    timer.cancel()
    expect(fired).toBe(false)
  })

  test('sleep ends early when it is told to', async () => {
    const stop = new AbortController()
    const startMs = systemClock.monotonicMs()
    const slept = systemClock.sleep(60_000, stop.signal)
    stop.abort()
    await slept
    await systemClock.sleep(60_000, stop.signal)
    expect(systemClock.monotonicMs() - startMs).toBeLessThan(5000)
  })
})

describe('openLog', () => {
  test('text: time, level, message, fields; quoted where they need it', () => {
    const lines: string[] = []
    const log = openLog({ write: (line) => lines.push(line) }).child({ shard: 2 })
    log.debug('not at this level')
    log.info('client connected', { user: 'a b', port: 5 })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO {2}client connected shard=2 user="a b" port=5\n$/,
    )
  })

  test('JSON: one object a line', () => {
    const lines: string[] = []
    openLog({ json: true, level: 'error', write: (line) => lines.push(line) }).error('x', { n: 1 })
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 50, msg: 'x', n: 1 })
  })

  test('the silent one says nothing and has silent children', () => {
    expect(silentLog.child({})).toBe(silentLog)
  })
})

test('work that takes turns: one piece each turn, in order, with others between', async () => {
  const seen: string[] = []
  const besides = () => {
    seen.push('-')
    if (seen.filter((one) => one === '-').length < 5) setImmediate(besides)
  }
  for (const name of ['a', 'b', 'c']) takeTurn(() => void seen.push(name))
  seen.push('now')
  setImmediate(besides)
  const last = deferred<void>()
  takeTurn(() => {
    seen.push('d')
    // Behind all, although it comes while one has its turn.
    takeTurn(() => last.resolve())
  })
  await last.promise
  expect(seen.join('')).toMatch(/^nowa-b-c-d-?$/)
})

/** Progress where there is no terminal, on one, and with --quiet. */
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { openProgress } from '../../../src/cli/progress.js'
import { FakeClock } from '../../support/fake-clock.js'

function collector(isTTY: boolean) {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 120 })
  let text = ''
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  return { stream, text: () => text }
}

describe('openProgress', () => {
  test('a plain line every few seconds, and one at the end', async () => {
    const clock = new FakeClock()
    const { stream, text } = collector(false)
    const board = openProgress({ quiet: false, stream, clock, everyMs: 1000 })
    const bar = board.bar({ label: 'orders', total: 4000, unit: 'bytes' })
    bar.update(1000, '10 rows')
    await clock.advance(999)
    expect(text()).toBe('')
    await clock.advance(1)
    bar.update(4000, '40 rows')
    await clock.advance(500)
    bar.finish()
    bar.finish()
    board.close()
    await clock.advance(5000)
    expect(text()).toBe(
      [
        'orders: 25 % (1.00 kB of 4.00 kB), 1.00 kB/s, 3.0 s left, 10 rows',
        'orders: 100 % (4.00 kB of 4.00 kB), 2.67 kB/s, in 1.5 s, 40 rows',
        '',
      ].join('\n'),
    )
    expect(clock.pendingTimers).toBe(0)
  })

  test('without a total there is no percentage and no rest', async () => {
    const clock = new FakeClock()
    const { stream, text } = collector(false)
    const board = openProgress({ quiet: false, stream, clock, everyMs: 1000 })
    board.bar({ label: 'stdin', unit: 'rows' }).update(2500)
    await clock.advance(1000)
    board.close()
    expect(text()).toBe('stdin: 2,500 rows, 2,500 rows/s\n')
  })

  test('two items at one time have a line each', async () => {
    const clock = new FakeClock()
    const { stream, text } = collector(false)
    const board = openProgress({ quiet: false, stream, clock, everyMs: 1000 })
    board.bar({ label: 'a', unit: 'rows' })
    board.bar({ label: 'b', unit: 'rows' })
    board.note('note')
    await clock.advance(1000)
    board.close()
    expect(
      text()
        .split('\n')
        .map((line) => line.split(':')[0]),
    ).toEqual(['note', 'a', 'b', ''])
  })

  test('a terminal gets bars', async () => {
    const clock = new FakeClock()
    const { stream, text } = collector(true)
    const board = openProgress({ quiet: false, stream, clock })
    const bar = board.bar({ label: 'orders', total: 10, unit: 'rows' })
    bar.update(10)
    await clock.advance(1000)
    bar.finish()
    board.close()
    expect(text()).toContain('orders: 100 % (10 of 10 rows)')
  })

  test('a terminal gets nothing more behind the last bar that ended, and a new block for the next', () => {
    const clock = new FakeClock()
    const { stream, text } = collector(true)
    const board = openProgress({ quiet: false, stream, clock })
    board.bar({ label: 'first', total: 10, unit: 'rows' }).finish()
    const ended = text()
    expect(ended).toMatch(/\n$/)
    board.close()
    expect(text()).toBe(ended)
    board.note('between')
    board.bar({ label: 'second', total: 10, unit: 'rows' }).finish()
    expect(text().slice(ended.length)).toMatch(/^between\n.*second: .*\n$/s)
    expect(text().slice(ended.length)).not.toContain('first')
  })

  test('--quiet says nothing', async () => {
    const clock = new FakeClock()
    const { stream, text } = collector(false)
    const board = openProgress({ quiet: true, stream, clock })
    const bar = board.bar({ label: 'x', unit: 'rows' })
    bar.update(5)
    board.note('x')
    await clock.advance(100_000)
    bar.finish()
    board.close()
    expect(text()).toBe('')
  })
})

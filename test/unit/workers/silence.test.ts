import { describe, expect, it } from 'vitest'
import { type Deferred, deferred } from '../../../src/base/deferred.js'
import { type Beating, SilenceWatch } from '../../../src/workers/silence.js'
import { FakeClock } from '../../support/fake-clock.js'

class FakeWorker implements Beating {
  mustAnswer = true
  isHung = false
  beats = 0
  readonly silences: number[] = []
  #waits: Deferred<unknown> | undefined

  beat(): Promise<unknown> {
    this.beats++
    if (!this.isHung) return Promise.resolve()
    this.#waits = deferred()
    return this.#waits.promise
  }

  wake(): void {
    this.isHung = false
    this.#waits?.resolve(undefined)
  }

  silent(forMs: number): void {
    this.silences.push(forMs)
  }
}

function watch(workers: FakeWorker[], limitMs = 5000) {
  const clock = new FakeClock()
  const watching = new SilenceWatch({ clock, limitMs, watched: () => workers })
  watching.start()
  return { clock, watching }
}

describe('workers that stand still', () => {
  it('are told of after the time allowed, and nobody else is', async () => {
    const [sound, hung] = [new FakeWorker(), new FakeWorker()]
    const { clock } = watch([sound, hung])
    await clock.advance(3000)
    hung.isHung = true
    await clock.advance(5000)
    expect(hung.silences).toEqual([])
    await clock.advance(2000)
    expect(hung.silences).toEqual([5000])
    expect(sound.silences).toEqual([])
    expect(sound.beats).toBe(10)
  })

  it('are forgiven when they wake in time', async () => {
    const hung = new FakeWorker()
    const { clock } = watch([hung])
    hung.isHung = true
    await clock.advance(4000)
    hung.wake()
    await clock.advance(20_000)
    expect(hung.silences).toEqual([])
  })

  it('are not blamed for a pause of the one who watches, nor while they start', async () => {
    const [hung, starting] = [new FakeWorker(), new FakeWorker()]
    hung.isHung = true
    starting.isHung = true
    starting.mustAnswer = false
    const { clock } = watch([hung, starting])
    await clock.advance(2000)
    clock.jump(60_000)
    await clock.advance(1000)
    expect(hung.silences).toEqual([])
    await clock.advance(5000)
    expect(hung.silences).toHaveLength(1)
    expect(starting.beats).toBe(0)
  })

  it('are left alone with a limit of 0, and after the end', async () => {
    const hung = new FakeWorker()
    hung.isHung = true
    const { clock } = watch([hung], 0)
    expect(clock.pendingTimers).toBe(0)
    const other = watch([hung])
    other.watching.stop()
    expect(other.clock.pendingTimers).toBe(0)
    await clock.advance(60_000)
    expect(hung.silences).toEqual([])
  })
})

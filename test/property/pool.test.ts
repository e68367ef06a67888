import fc from 'fast-check'
import { expect, test } from 'vitest'
import { settled } from '../support/fake-clock.js'
import { bySize } from '../support/test-size.js'
import { type Held, makePool, watch } from '../unit/pool/fake-kind.js'

const MIN = 2
const MAX = 5

type Step =
  | { readonly kind: 'take' | 'release' | 'discard' | 'break' | 'age'; readonly which: number }
  | { readonly kind: 'wait'; readonly which: number }

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom<Step['kind']>(
      'take',
      'take',
      'release',
      'discard',
      'break',
      'age',
      'wait',
    ),
    which: fc.nat(20),
  }),
  { maxLength: 60 },
)

/** What must hold whatever happens. */
function holds(pool: ReturnType<typeof makePool>): void {
  const { idle, lent, opening, total, waiting } = pool.pool.snapshot()
  expect(total).toBeLessThanOrEqual(MAX)
  expect(idle + lent).toBe(total)
  expect(pool.kind.live).toHaveLength(total)
  if (waiting > 0) expect(idle).toBe(0)
  if (waiting > 0 && total < MAX) expect(opening).toBe(1)
}

/** One pool under a script of steps. */
class Run {
  readonly made = makePool({ minSize: MIN, maxSize: MAX, lifetimeMs: 5000, idleTimeoutMs: 1000 })
  readonly held: Held[] = []
  readonly #waits: ReturnType<typeof watch>[] = []

  async step({ kind, which }: Step): Promise<void> {
    const { pool, clock } = this.made
    if (kind === 'take') this.#take()
    else if (kind === 'wait') await clock.advance(which * 100)
    else if (kind === 'age') pool.maintain()
    else this.#end(kind, which)
    await this.#settle()
    expect(new Set(this.held.map(({ resource }) => resource)).size).toBe(this.held.length)
    expect(pool.snapshot().lent).toBe(this.held.length)
    holds(this.made)
  }

  /** Everything is given back, and the pool has a few beats. */
  async end(): Promise<void> {
    while (this.held.length > 0) {
      this.held.pop()?.release()
      await this.#settle()
    }
    for (let beat = 0; beat < MIN + 1; beat++) {
      this.made.pool.maintain()
      await settled()
    }
  }

  #take(): void {
    const atOnce = this.made.pool.tryCheckout()
    if (atOnce) this.held.push(atOnce)
    else this.#waits.push(watch(this.made.pool.checkout()))
  }

  #end(kind: Step['kind'], which: number): void {
    const [one] = this.held.splice(which % Math.max(1, this.held.length), 1)
    if (!one) return
    if (kind === 'break') one.resource.condition = 'failed'
    if (kind === 'discard') one.discard('test')
    else one.release()
  }

  async #settle(): Promise<void> {
    await settled()
    for (let i = this.#waits.length - 1; i >= 0; i--) {
      const wait = this.#waits[i]
      if (!wait?.value && !wait?.error) continue
      if (wait.value) this.held.push(wait.value)
      this.#waits.splice(i, 1)
    }
  }
}

test('D151, D170, D173, D175: a pool never lends one resource twice, never has more than its size, and its snapshot adds up', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (script) => {
      const run = new Run()
      for (const step of script) await run.step(step)
      await run.end()
      expect(run.made.kind.live.length).toBeGreaterThanOrEqual(MIN)
      holds(run.made)
    }),
    { numRuns: bySize(150, 3000), seed: 170 },
  )
})

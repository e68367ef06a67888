/** A kind of resource whose opening, condition and checks a test decides. */
import { type Deferred, deferred } from '../../../src/base/deferred.js'
import type { Checkout } from '../../../src/pool/checkout.js'
import type {
  Condition,
  PoolEvents,
  PoolLimits,
  ResourceKind,
} from '../../../src/pool/pool-types.js'
import { ResourcePool } from '../../../src/pool/resource-pool.js'
import { FakeClock } from '../../support/fake-clock.js'

export interface FakeResource {
  id: number
  condition: Condition
  isGood: boolean
  isClosed: boolean
  why?: string
}

export class FakeKind implements ResourceKind<FakeResource> {
  opened: FakeResource[] = []
  openings: Deferred<void>[] = []
  /** When true, `open` waits for the test to settle `openings`. */
  isManual = false
  isDown = false
  checks = 0
  mostOpenAtOnce = 0

  async open(signal: AbortSignal): Promise<FakeResource> {
    if (this.isManual) {
      const gate = deferred<void>()
      this.openings.push(gate)
      this.mostOpenAtOnce = Math.max(this.mostOpenAtOnce, this.openings.length)
      signal.addEventListener('abort', () => gate.reject(new Error('aborted')))
      try {
        await gate.promise
      } finally {
        this.openings.splice(this.openings.indexOf(gate), 1)
      }
    }
    if (this.isDown) throw new Error('refused')
    const resource = {
      id: this.opened.length + 1,
      condition: 'fit' as const,
      isGood: true,
      isClosed: false,
    }
    this.opened.push(resource)
    return resource
  }

  close(resource: FakeResource, why: string): void {
    if (resource.isClosed) throw new Error(`closed twice: ${resource.id}`)
    resource.isClosed = true
    resource.why = why
  }

  condition(resource: FakeResource): Condition {
    return resource.condition
  }

  async check(resource: FakeResource): Promise<boolean> {
    this.checks++
    return resource.isGood
  }

  get live(): FakeResource[] {
    return this.opened.filter((resource) => !resource.isClosed)
  }
}

export class FakeEvents implements PoolEvents {
  log: string[] = []
  onOpenFailed(error: unknown): void {
    this.log.push(`open failed: ${(error as Error).message}`)
  }
  onOpened(): void {
    this.log.push('opened')
  }
  onWaited(): void {}
  onBroken(why: 'failed' | 'check'): void {
    this.log.push(`broken: ${why}`)
  }
  timedOut(): Error {
    return new Error('checkout timeout')
  }
  offline(): Error {
    return new Error('offline')
  }
}

export const fakeLimits: PoolLimits = {
  minSize: 0,
  maxSize: 3,
  reservedForHolders: 0,
  reserveSize: 0,
  reserveAfterMs: 1000,
  checkoutTimeoutMs: 5000,
  lifetimeMs: 86_400_000,
  lifetimeJitterMs: 0,
  idleTimeoutMs: 60_000,
  checkIntervalMs: Number.POSITIVE_INFINITY,
}

export function makePool(limits: Partial<PoolLimits> = {}, random: () => number = () => 0.5) {
  const clock = new FakeClock()
  const kind = new FakeKind()
  const events = new FakeEvents()
  const pool = new ResourcePool(kind, { ...fakeLimits, ...limits }, events, { clock, random })
  return { clock, kind, events, pool }
}

export type Held = Checkout<FakeResource>

export async function take(pool: ResourcePool<FakeResource>, count: number): Promise<Held[]> {
  const held: Held[] = []
  for (let i = 0; i < count; i++) held.push(pool.tryCheckout() ?? (await pool.checkout()))
  return held
}

/** Records how a wait ends. */
export function watch(promise: Promise<Held>) {
  const outcome: { value?: Held; error?: Error } = {}
  promise.then(
    (value) => {
      outcome.value = value
    },
    (error: Error) => {
      outcome.error = error
    },
  )
  return outcome
}

import { describe, expect, it } from 'vitest'
import { Health, type HealthSettings } from '../../../src/pool/health.js'
import { FakeClock } from '../../support/fake-clock.js'

function make(settings: Partial<HealthSettings> = {}) {
  const clock = new FakeClock()
  const made = {
    mayBan: true,
    answer: true as boolean | undefined,
    checks: [] as boolean[],
    log: [] as string[],
  }
  const health = new Health({
    clock,
    settings: {
      idleCheckIntervalMs: 1000,
      firstCheckDelayMs: 500,
      banTimeoutMs: 5000,
      ...settings,
    },
    mayBan: () => made.mayBan,
    check: async (open) => {
      made.checks.push(open)
      return made.answer
    },
    onBan: (reason) => made.log.push(`ban: ${reason}`),
    onLift: () => made.log.push('lift'),
  })
  /** Moves time in beats. */
  const run = async (ms: number) => {
    for (let at = 0; at < ms; at += 100) {
      await clock.advance(100)
      await health.beat()
    }
  }
  return { health, run, made }
}

describe('health of a host', () => {
  it('D93, D164: checks at the interval, first after the delay, whatever clients do', async () => {
    const { run, made } = make()
    await run(400)
    expect(made.checks).toHaveLength(0)
    await run(100)
    expect(made.checks).toHaveLength(1)
    await run(3000)
    expect(made.checks).toHaveLength(4)
  })

  it('does not check at interval 0, but still lifts bans', async () => {
    const { run, made, health } = make({ idleCheckIntervalMs: 0 })
    await run(600)
    const before = made.checks.length
    await run(10_000)
    expect(made.checks.length).toBe(before)
    health.failed('refused')
    await run(6000)
    expect(health.ban).toBeUndefined()
  })

  it('D97: bans on failure and lifts after the time-out, not before', async () => {
    const { run, health, made } = make()
    health.failed('refused')
    expect(health.ban?.reason).toBe('refused')
    await run(4900)
    expect(health.ban).toBeDefined()
    await run(1200)
    expect(health.ban).toBeUndefined()
    expect(made.log).toEqual(['ban: refused', 'lift'])
    expect(made.checks.slice(0, 1)).toEqual([true])
  })

  it('D96: lifts a ban only after a good check', async () => {
    const { run, health, made } = make()
    health.failed('refused')
    made.answer = false
    await run(20_000)
    expect(health.ban).toBeDefined()
    made.answer = true
    await run(1100)
    expect(health.ban).toBeUndefined()
    expect(health.isHealthy).toBe(true)
  })

  it('never bans when it may not, nor with a time-out of 0', () => {
    const one = make()
    one.made.mayBan = false
    one.health.failed('refused')
    expect(one.health.ban).toBeUndefined()
    expect(one.health.isHealthy).toBe(false)
    const two = make({ banTimeoutMs: 0 })
    two.health.failed('refused')
    expect(two.health.ban).toBeUndefined()
  })

  it('keeps a manual ban until it is lifted by hand', async () => {
    const { run, health } = make()
    health.banByHand()
    await run(60_000)
    health.forgive()
    expect(health.ban?.isManual).toBe(true)
    expect(health.banLeftMs).toBe(Number.POSITIVE_INFINITY)
    health.lift()
    expect(health.ban).toBeUndefined()
  })

  it('looks at once at a host one of whose servers broke', async () => {
    const { run, health, made } = make({ idleCheckIntervalMs: 60_000, firstCheckDelayMs: 60_000 })
    health.suspect()
    await run(100)
    expect(made.checks).toEqual([false])
  })

  it('bans a replica that is too far behind until it has caught up, whatever its checks say', async () => {
    const { health, run, made } = make()
    health.lags(true)
    expect(health.ban).toMatchObject({ reason: 'replica lag', isManual: false })
    await run(20_000)
    expect(health.ban).toBeDefined()
    health.lags(false)
    expect(health.ban).toBeUndefined()
    health.banByHand()
    health.lags(false)
    expect(health.ban?.isManual).toBe(true)
    health.lift()
    made.mayBan = false
    health.lags(true)
    expect(health.ban).toBeUndefined()
  })
})

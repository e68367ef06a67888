/**
 * The monitor of HA groups: a prober for each node, and a checker that changes routes by the ages of their heartbeats.
 * Any number of watchers may share a state database: each switch is a compare-and-set there.
 */
import type { Clock } from '../base/clock.js'
import { engineError, toEngineError } from '../errors/engine-error.js'
import type { HaLine } from './ha-log.js'
import { type HaGroup, type HaPlan, nodesOf } from './ha-plan.js'
import { readGroups, type StoredGroup } from './ha-store.js'
import type { Link, OpenLink } from './links.js'
import { connectState, probeNode } from './prober.js'
import { switchGroup } from './switch-group.js'
import { type Decision, decide } from './switch-rules.js'

/** The checker starts this long behind the probers. */
const checkerDelayMs = 2000
/** A start that fails is told, and the process ends, no sooner than this: a supervisor must not spin. */
const failedStartMs = 1000

export interface WatchOptions {
  readonly plan: HaPlan
  readonly open: OpenLink
  readonly clock: Clock
  readonly line: HaLine
  /** Ends all loops; connections are closed. */
  readonly signal: AbortSignal
  readonly switched?: (group: HaGroup, to: 'primary' | 'standby') => void
}

/**
 * Watches until `signal` aborts.
 * @throws when the state database cannot be reached or has no ha_config for these groups, at start only
 */
export async function watchGroups(options: WatchOptions): Promise<void> {
  const { plan, clock, line } = options
  let state: Link
  try {
    state = await options.open(undefined)
  } catch (error) {
    line(`CONNECT ERROR: state database: ${toEngineError(error).message}`)
    await clock.sleep(failedStartMs)
    throw error
  }
  try {
    checkKnown(plan, await readGroups(state))
  } catch (error) {
    const { sqlstate, message } = toEngineError(error)
    line(`ERROR: ${sqlstate} : select from ha_config : ${message}`)
    await state.close()
    await clock.sleep(failedStartMs)
    throw error
  }
  const nodes = nodesOf(plan)
  line(`NOTICE: watching ${plan.groups.length} groups, ${nodes.length} nodes`)
  const probers = nodes.map((node) =>
    probeNode({ ...options, node, connectTimeoutMs: plan.connectTimeoutMs }),
  )
  const checker = new Checker(options, state)
  await Promise.all([...probers, checker.run()])
}

function checkKnown(plan: HaPlan, stored: readonly StoredGroup[]): void {
  const missing = plan.groups.filter(({ id }) => !stored.some((one) => one.id === id))
  if (missing.length > 0)
    throw engineError('HA_NO_STATE', {
      reason: `no row for ${missing.map(({ name }) => name).join(', ')}`,
    })
}

class Checker {
  readonly #options: WatchOptions
  readonly #intervalMs: number
  #state: Link | undefined
  /** No decision before this moment: heartbeats may be old because nobody could write them. */
  #blindUntilMs: number
  #lastPassMs: number

  constructor(options: WatchOptions, state: Link) {
    this.#options = options
    this.#intervalMs = Math.min(
      ...options.plan.groups.map(({ heartbeatIntervalMs }) => heartbeatIntervalMs),
    )
    this.#state = state
    this.#blindUntilMs = 0
    this.#lastPassMs = options.clock.monotonicMs()
    this.#goBlind()
  }

  async run(): Promise<void> {
    const { clock, signal } = this.#options
    await clock.sleep(checkerDelayMs, signal)
    while (!signal.aborted) {
      await this.#pass()
      if (!signal.aborted) await clock.sleep(this.#intervalMs, signal)
    }
    await this.#state?.close()
  }

  /** Heartbeats need an interval and a connection to come back after a start, an outage of the state database, or a sleep of this process. */
  #goBlind(): void {
    const longest = Math.max(
      ...this.#options.plan.groups.map(({ heartbeatIntervalMs }) => heartbeatIntervalMs),
    )
    this.#blindUntilMs =
      this.#options.clock.monotonicMs() + longest + this.#options.plan.connectTimeoutMs
  }

  async #pass(): Promise<void> {
    const { clock, line, plan } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#lastPassMs > checkerDelayMs + 2 * this.#intervalMs) {
      line('NOTICE: this process stood still; no decision until heartbeats are back')
      this.#goBlind()
    }
    this.#lastPassMs = nowMs
    try {
      const state = this.#state as Link
      const stored = await readGroups(state)
      if (nowMs < this.#blindUntilMs) return
      // fail-over of all groups comes before fail-back, each group for itself
      for (const wanted of ['fail_over', 'fail_back'] as const)
        for (const group of plan.groups) await this.#judge(state, group, stored, wanted)
    } catch (error) {
      line(`ERROR: check failed: ${toEngineError(error).sqlstate} ${toEngineError(error).message}`)
      await this.#state?.close()
      this.#state = await connectState({
        ...this.#options,
        connectTimeoutMs: plan.connectTimeoutMs,
      })
      this.#goBlind()
    }
  }

  async #judge(
    state: Link,
    group: HaGroup,
    stored: readonly StoredGroup[],
    wanted: 'fail_over' | 'fail_back',
  ): Promise<void> {
    const found = stored.find(({ id }) => id === group.id)
    if (found === undefined || (found.current === 'primary') !== (wanted === 'fail_over')) return
    const decision = decide(found, group)
    if (decision === wanted) await this.#switch(state, group, wanted)
    else this.#tell(group, decision)
  }

  #tell(group: HaGroup, decision: Decision): void {
    const { line } = this.#options
    if (decision === 'both_failed')
      line(`ERROR: group ${group.id} (${group.name}): primary and standby both failed, no switch`)
    else if (decision === 'no_fail_back')
      line(
        `ERROR: group ${group.id} (${group.name}): the promoted standby failed; its old primary misses what was written since, no switch`,
      )
  }

  async #switch(state: Link, group: HaGroup, action: 'fail_over' | 'fail_back'): Promise<void> {
    const { line, open, clock } = this.#options
    const to = action === 'fail_over' ? 'standby' : 'primary'
    const from = to === 'standby' ? 'primary' : 'standby'
    line(`ERROR: group ${group.id} (${group.name}): ${from} failed, switching to ${to}`)
    try {
      const done = await switchGroup({ state, open, clock, group, to, action })
      line(
        done
          ? `NOTICE: group ${group.id} (${group.name}): route is on the ${to}`
          : `NOTICE: group ${group.id} (${group.name}): not switched, its state changed meanwhile`,
      )
      if (done) this.#options.switched?.(group, to)
    } catch (error) {
      // what the state database itself says ends the link: the caller connects again
      const { code, message } = toEngineError(error)
      line(`ERROR: group ${group.id} (${group.name}): not switched: ${message}`)
      if (!code.startsWith('HA_')) throw error
    }
  }
}

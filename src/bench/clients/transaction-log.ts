/**
 * `--log`: a line a transaction, or with an aggregation interval a line an interval, in the form of pgbench 15; one
 * file a thread. Source followed: doLog and initStats in pgbench.c.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { engineError } from '../../errors/engine-error.js'
import { Prng } from '../../topology/prng.js'
import type { LogPlan } from '../run-plan.js'

const BUFFERED = 65_536

export interface LoggedTransaction {
  readonly client: number
  /** Of this client, from 1; skipped ones count. */
  readonly number: number
  readonly script: number
  readonly ending: 'done' | 'skipped' | 'serialization' | 'deadlock' | 'lost'
  readonly latencyUs: number
  readonly lagUs: number
  readonly tries: number
}

interface LogTools {
  readonly plan: LogPlan
  /** Of its thread, from 0. */
  readonly thread: number
  /** What decides which lines are kept. */
  readonly seed: bigint
  readonly hasRate: boolean
  readonly hasRetries: boolean
  /** Failures by kind. */
  readonly isDetailed: boolean
  /** Milliseconds since the epoch, with fractions. */
  nowMs(): number
}

class Interval {
  count = 0
  skipped = 0
  retried = 0
  retries = 0
  serialization = 0
  deadlock = 0
  readonly latency = new Sum()
  readonly lag = new Sum()
}

class Sum {
  sum = 0
  squares = 0
  min = 0
  max = 0
  #count = 0

  add(value: number): void {
    if (this.#count === 0 || value < this.min) this.min = value
    if (this.#count === 0 || value > this.max) this.max = value
    this.#count++
    this.sum += value
    this.squares += value * value
  }

  toString(): string {
    return [this.sum, this.squares, this.min, this.max].map((one) => one.toFixed(0)).join(' ')
  }
}

export class TransactionLog {
  readonly #tools: LogTools
  readonly #file: number
  readonly #sampler: Prng
  #text = ''
  #intervalMs = 0
  #interval = new Interval()

  /** @throws FILE_MISSING when the file cannot be made */
  constructor(tools: LogTools) {
    this.#tools = tools
    this.#sampler = Prng.ofSeed(tools.seed)
    const { prefix, processId } = tools.plan
    const path = `${prefix}.${processId}${tools.thread === 0 ? '' : `.${tools.thread}`}`
    try {
      this.#file = openSync(path, 'w')
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw engineError('FILE_MISSING', { path, reason }, { cause })
    }
  }

  /** The run starts now. The lines of intervals tell whole seconds, so the intervals begin with them. */
  begin(): void {
    this.#intervalMs = Math.floor(this.#tools.nowMs() / 1000) * 1000
  }

  note(transaction: LoggedTransaction): void {
    const nowMs = this.#tools.nowMs()
    const { aggregateMs, samplingRate } = this.#tools.plan
    if (samplingRate !== undefined && this.#chance() > samplingRate) return
    if (aggregateMs === undefined) this.#write(this.#lineOf(transaction, nowMs))
    else {
      this.#closeIntervals(aggregateMs, nowMs)
      this.#add(transaction)
    }
  }

  /** Writes what waits; of intervals those that are whole. */
  close(): void {
    const { aggregateMs } = this.#tools.plan
    if (aggregateMs !== undefined) this.#closeIntervals(aggregateMs, this.#tools.nowMs())
    this.#flush()
    closeSync(this.#file)
  }

  /** From 0 to below 1. */
  #chance(): number {
    return Number(this.#sampler.nextUint64() >> 11n) / 2 ** 53
  }

  #lineOf(transaction: LoggedTransaction, nowMs: number): string {
    const { hasRate, hasRetries, isDetailed } = this.#tools
    const { client, number, script, ending, latencyUs, lagUs, tries } = transaction
    const failure = isDetailed && ending !== 'lost' ? ending : 'failed'
    const result =
      ending === 'done' ? latencyUs.toFixed(0) : ending === 'skipped' ? ending : failure
    const seconds = Math.floor(nowMs / 1000)
    const micros = Math.floor((nowMs - seconds * 1000) * 1000)
    // pgbench knows the times of good ones alone
    const lag = hasRate ? ` ${ending === 'done' ? lagUs.toFixed(0) : 0}` : ''
    const retries = hasRetries ? ` ${tries - 1}` : ''
    return `${client} ${number} ${result} ${script} ${seconds} ${micros}${lag}${retries}`
  }

  #closeIntervals(aggregateMs: number, nowMs: number): void {
    for (; this.#intervalMs + aggregateMs <= nowMs; this.#intervalMs += aggregateMs) {
      const { count, latency, lag, skipped, retried, retries, serialization, deadlock } =
        this.#interval
      const failures = this.#tools.isDetailed ? `${serialization} ${deadlock}` : '0 0'
      this.#write(
        `${this.#intervalMs / 1000} ${count} ${latency} ${lag} ${skipped} ${retried} ${retries} ${failures}`,
      )
      this.#interval = new Interval()
    }
  }

  #add({ ending, latencyUs, lagUs, tries }: LoggedTransaction): void {
    const interval = this.#interval
    if (ending === 'skipped') {
      interval.skipped++
      return
    }
    if (tries > 1) {
      interval.retried++
      interval.retries += tries - 1
    }
    // pgbench has no column for transactions that were lost with their connection
    if (ending === 'lost') return
    if (ending !== 'done') {
      interval[ending]++
      return
    }
    interval.count++
    interval.latency.add(latencyUs)
    if (this.#tools.hasRate) interval.lag.add(lagUs)
  }

  #write(line: string): void {
    this.#text += `${line}\n`
    if (this.#text.length >= BUFFERED) this.#flush()
  }

  #flush(): void {
    if (this.#text !== '') writeSync(this.#file, this.#text)
    this.#text = ''
  }
}

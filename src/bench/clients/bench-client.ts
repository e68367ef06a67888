/**
 * One client: chooses scripts, runs them, counts, retries, until its transactions or its time are over. Clients never
 * wait for each other. Source followed: advanceConnectionState in pgbench.c.
 */
import { Prng } from '../../topology/prng.js'
import type { Variables } from '../script/variables.js'
import type { BenchConnection } from './bench-connection.js'
import type { Ending } from './client-ending.js'
import type { ClientGroup } from './client-group.js'
import type { ConnectionSource } from './connection-source.js'
import { openConnection } from './reconnect.js'
import { ScriptRunner } from './script-runner.js'

export class BenchClient {
  readonly id: number
  readonly #group: ClientGroup
  readonly #runner: ScriptRunner
  readonly #source: ConnectionSource
  #connection: BenchConnection | undefined
  #scriptIndex = 0
  #done = 0

  constructor(id: number, group: ClientGroup, seed: bigint) {
    this.id = id
    this.#group = group
    this.#source = group.connectionSource()
    this.#runner = new ScriptRunner(id, group, Prng.ofSeed(seed))
  }

  get variables(): Variables {
    return this.#runner.variables
  }

  /** Opens the connection that this client keeps for the whole run. */
  async connect(): Promise<void> {
    this.#connection = await this.#source.next()
  }

  /** Runs to its end; resolves with false when the client was aborted. */
  async run(): Promise<boolean> {
    try {
      while (!this.#isFinished()) {
        if (!(await this.#transaction())) return false
      }
      return true
    } finally {
      this.close()
      this.#source.close()
    }
  }

  #isFinished(): boolean {
    const { plan, isOver } = this.#group
    return isOver || (plan.durationMs === undefined && this.#done >= plan.transactions)
  }

  /** One transaction with its retries. False: this client is at its end for good. */
  async #transaction(): Promise<boolean> {
    const group = this.#group
    this.#scriptIndex = group.chooseScript()
    this.#runner.hasWaited = false
    const hasRate = group.plan.ratePerSec !== undefined
    const scheduledMs = hasRate ? await this.#turn() : 0
    if (scheduledMs === undefined) return true
    const connection = this.#connection ?? (await this.#open())
    if (typeof connection === 'string') return connection === 'over' || this.#abort()
    const begunMs = group.clock.monotonicMs()
    // a timer may fire a fraction of a millisecond early, which is no lag
    const fromMs = hasRate ? Math.min(scheduledMs, begunMs) : begunMs
    const remembered = group.plan.maxTries === 1 ? undefined : this.#runner.prng.clone()
    let ending = await this.#runner.run(this.#scriptIndex, connection)
    let tries = 1
    if (ending === 'serialization' || ending === 'deadlock')
      [ending, tries] = await this.#retries(ending, fromMs, remembered)
    if (ending === 'interrupted') return true
    if (ending === 'aborted') return this.#abort()
    const endMs = group.clock.monotonicMs()
    const latencyUs = (endMs - fromMs) * 1000
    group.noteTransaction(
      connection.nodeIndex,
      {
        client: this.id,
        number: ++this.#done,
        script: this.#scriptIndex,
        ending,
        tries,
        latencyUs,
        lagUs: (begunMs - fromMs) * 1000,
        sqlstate: this.#runner.sqlstate,
      },
      endMs,
    )
    return await this.#leave(connection, ending, latencyUs)
  }

  /** What becomes of the connection. False as for `#transaction`. */
  #leave(
    connection: BenchConnection,
    ending: Ending,
    latencyUs: number,
  ): boolean | Promise<boolean> {
    const group = this.#group
    if (ending === 'lost') {
      this.close()
      return true
    }
    if (connection.isInTransaction) {
      group.log(
        `client ${this.id} aborted: end of script reached without completing the last transaction`,
      )
      return this.#abort()
    }
    if (group.plan.reconnect) this.#closeTimed()
    else this.#connection = this.#source.done(connection, latencyUs)
    if (this.#runner.hasWaited) return true
    // A script of backslash commands alone must not keep the other clients from running.
    return group.clock.sleep(0).then(() => true)
  }

  /** The time at which the transaction should begin; those that come too late by the latency limit are skipped. */
  async #turn(): Promise<number | undefined> {
    const group = this.#group
    for (;;) {
      const scheduledMs = await group.waitForTurn()
      if (scheduledMs === undefined || !group.isTooLate(scheduledMs)) return scheduledMs
      group.noteSkipped(this.id, ++this.#done, this.#scriptIndex)
      if (this.#isFinished()) return undefined
    }
  }

  /** Behind a first try that failed so: tries again as often as allowed. */
  async #retries(
    failed: Ending,
    fromMs: number,
    remembered: Prng | undefined,
  ): Promise<[Ending, number]> {
    const { plan } = this.#group
    const runner = this.#runner
    let ending = failed
    for (let tries = 1; ; tries++) {
      if (ending !== 'serialization' && ending !== 'deadlock') return [ending, tries]
      if (!(await runner.rollback(this.#connection as BenchConnection)))
        return [plan.reconnectMs === undefined ? 'aborted' : 'lost', tries]
      if (this.#group.isOver) return ['interrupted', tries]
      const command = this.#group.commandStats(this.#scriptIndex, runner.commandIndex)
      if (
        !remembered ||
        (plan.maxTries !== 0 && tries >= plan.maxTries) ||
        this.#group.isLate(fromMs)
      ) {
        command.failures++
        this.#sayFailed(tries, fromMs, false)
        return [ending, tries]
      }
      command.retries++
      this.#sayFailed(tries, fromMs, true)
      // A retry draws the same random numbers again.
      runner.prng = remembered.clone()
      ending = await runner.run(this.#scriptIndex, this.#connection as BenchConnection)
    }
  }

  #sayFailed(tries: number, fromMs: number, isRetry: boolean): void {
    const { plan, clock } = this.#group
    const { maxTries, latencyLimitMs } = plan
    if (!plan.verboseErrors) return
    const what = isRetry ? 'repeats the transaction after the error' : 'ends the failed transaction'
    const limit = maxTries === 0 ? '' : `/${maxTries}`
    const used =
      latencyLimitMs === undefined
        ? ''
        : `, ${((100 * (clock.monotonicMs() - fromMs)) / latencyLimitMs).toFixed(3)}% of the maximum time of tries was used`
    this.#group.log(`client ${this.id} ${what} (try ${tries}${limit}${used})`, 'info')
  }

  async #open(): Promise<BenchConnection | 'over' | 'failed'> {
    this.#runner.hasWaited = true
    const opened = await openConnection(this.#source, this.#group)
    if (opened === 'failed')
      this.#group.log(`client ${this.id} aborted while establishing connection`)
    if (typeof opened !== 'string') this.#connection = opened
    return opened
  }

  #abort(): false {
    this.#group.noteAbort(this.#connection, this.#runner.sqlstate)
    return false
  }

  /** Closing is part of the connection time, as in pgbench. */
  #closeTimed(): void {
    const startMs = this.#group.clock.monotonicMs()
    this.close()
    this.#group.stats.connectUs += (this.#group.clock.monotonicMs() - startMs) * 1000
  }

  /** Gives up the connection. */
  close(): void {
    if (this.#connection) this.#source.drop(this.#connection)
    this.#connection?.close()
    this.#connection = undefined
  }
}

/**
 * One client: chooses scripts, runs their commands one after the other, counts, retries, until its transactions or its
 * time are over. Clients never wait for each other. Source followed: advanceConnectionState in pgbench.c.
 */
import { isEngineError, toEngineError } from '../../errors/engine-error.js'
import { Prng } from '../../topology/prng.js'
import { ConditionStack } from '../script/condition-stack.js'
import { evaluate } from '../script/evaluate.js'
import type { Expression } from '../script/expression-parser.js'
import { keepResults } from '../script/keep-results.js'
import type { Command, SqlCommand } from '../script/script.js'
import { sleepAmount } from '../script/sleep-amount.js'
import { isTrue, type Value } from '../script/value.js'
import { fillSql, Variables } from '../script/variables.js'
import { type BenchConnection, errorText, type Outcome } from './bench-connection.js'
import { ClientAborted, type Ending, isServerGone, retriable } from './client-ending.js'
import type { ClientGroup } from './client-group.js'
import type { ConnectionSource } from './connection-source.js'
import { openConnection } from './reconnect.js'
import { addSample } from './stats.js'

export class BenchClient {
  readonly id: number
  readonly variables = new Variables()
  readonly #group: ClientGroup
  readonly #conditions = new ConditionStack()
  #prng: Prng
  readonly #source: ConnectionSource
  #connection: BenchConnection | undefined
  #scriptIndex = 0
  #commandIndex = 0
  #isPipelining = false
  #done = 0
  #hasWaited = false
  /** Of the error with which the last try ended. */
  #sqlstate: string | undefined

  constructor(id: number, group: ClientGroup, seed: bigint) {
    this.id = id
    this.#group = group
    this.#source = group.connectionSource()
    this.#prng = Prng.ofSeed(seed)
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
    this.#hasWaited = false
    const scheduledMs = await this.#turn()
    if (scheduledMs === undefined) return true
    const connected = await this.#ensureConnection()
    if (connected === 'over') return true
    if (connected === 'failed') {
      group.log(`client ${this.id} aborted while establishing connection`)
      return this.#abort()
    }
    const begunMs = group.clock.monotonicMs()
    // a timer may fire a fraction of a millisecond early, which is no lag
    const fromMs = group.plan.ratePerSec === undefined ? begunMs : Math.min(scheduledMs, begunMs)
    const { ending, tries } = await this.#tries(fromMs)
    if (ending === 'interrupted') return true
    if (ending === 'aborted') return this.#abort()
    const isLost = ending === 'lost'
    const connection = this.#open
    const latencyUs = (group.clock.monotonicMs() - fromMs) * 1000
    group.noteTransaction(connection, {
      client: this.id,
      number: ++this.#done,
      script: this.#scriptIndex,
      ending,
      tries,
      latencyUs,
      lagUs: (begunMs - fromMs) * 1000,
      ...(this.#sqlstate === undefined ? {} : { sqlstate: this.#sqlstate }),
    })
    if (isLost) {
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
    // A script of backslash commands alone must not keep the other clients from running.
    if (!this.#hasWaited) await group.clock.sleep(0)
    return true
  }

  /** The time at which the transaction should begin; those that come too late by the latency limit are skipped. */
  async #turn(): Promise<number | undefined> {
    const group = this.#group
    for (;;) {
      const scheduledMs = await group.waitForTurn()
      if (scheduledMs === undefined || !group.isTooLate(scheduledMs)) return scheduledMs
      group.noteSkipped(this.id, ++this.#done, this.#scriptIndex, scheduledMs)
      if (this.#isFinished()) return undefined
    }
  }

  async #tries(fromMs: number): Promise<{ ending: Ending; tries: number }> {
    const { plan } = this.#group
    // A retry draws the same random numbers again.
    const remembered = this.#prng.clone()
    for (let tries = 1; ; tries++) {
      const ending = await this.#once()
      if (ending !== 'serialization' && ending !== 'deadlock') return { ending, tries }
      if (!(await this.#rollback()))
        return { ending: this.#group.plan.reconnectMs === undefined ? 'aborted' : 'lost', tries }
      if (this.#group.isOver) return { ending: 'interrupted', tries }
      const command = this.#group.commandStats(this.#scriptIndex, this.#commandIndex)
      if ((plan.maxTries !== 0 && tries >= plan.maxTries) || this.#group.isLate(fromMs)) {
        command.failures++
        this.#sayFailed(tries, false)
        return { ending, tries }
      }
      command.retries++
      this.#sayFailed(tries, true)
      this.#prng = remembered.clone()
    }
  }

  #sayFailed(tries: number, isRetry: boolean): void {
    const { plan } = this.#group
    if (!plan.verboseErrors) return
    const what = isRetry ? 'repeats the transaction after the error' : 'ends the failed transaction'
    const limit = plan.maxTries === 0 ? '' : `/${plan.maxTries}`
    this.#group.log(`client ${this.id} ${what} (try ${tries}${limit})`, 'info')
  }

  async #ensureConnection(): Promise<'open' | 'over' | 'failed'> {
    if (this.#connection !== undefined) return 'open'
    this.#hasWaited = true
    const opened = await openConnection(this.#source, this.#group)
    if (typeof opened === 'string') return opened
    this.#connection = opened
    return 'open'
  }

  /** Runs the script once from its start. */
  async #once(): Promise<Ending> {
    const commands = this.#group.scripts[this.#scriptIndex]!.commands
    this.#conditions.reset()
    this.#isPipelining = false
    this.#sqlstate = undefined
    try {
      for (let i = 0; i < commands.length; i++) {
        this.#commandIndex = i
        const command = commands[i] as Command
        if (!this.#conditions.isActive && this.#skip(command)) continue
        const ending = await this.#timed(command)
        if (ending !== undefined) return ending
      }
      if (!this.#isPipelining) return 'done'
      throw new ClientAborted(`client ${this.id} aborted: end of script reached with pipeline open`)
    } catch (error) {
      if (!(error instanceof ClientAborted)) throw error
      return this.#aborted(error)
    }
  }

  #aborted({ message, sqlstate }: ClientAborted): 'lost' | 'aborted' {
    const { plan, log } = this.#group
    this.#sqlstate = sqlstate
    const isLost = plan.reconnectMs !== undefined && isServerGone(sqlstate)
    if (!isLost) log(message)
    else if (plan.verboseErrors) log(message, 'info')
    return isLost ? 'lost' : 'aborted'
  }

  async #timed(command: Command): Promise<Ending | undefined> {
    const { plan, clock } = this.#group
    if (!plan.reportPerCommand) return await this.#execute(command)
    const startMs = clock.monotonicMs()
    const index = this.#commandIndex
    const ending = await this.#execute(command)
    if (ending === undefined) {
      const stats = this.#group.commandStats(this.#scriptIndex, index)
      addSample(stats.timeUs, (clock.monotonicMs() - startMs) * 1000)
    }
    return ending
  }

  /** In a branch that is not run, only the conditions count. True: go on with the next command. */
  #skip(command: Command): boolean {
    if (command.kind === 'if') this.#conditions.enterSkipped()
    else if (command.kind === 'elif') return !this.#conditions.wantsElif
    else if (command.kind === 'else') this.#conditions.else()
    else if (command.kind === 'endif') this.#conditions.leave()
    return true
  }

  async #execute(command: Command): Promise<Ending | undefined> {
    switch (command.kind) {
      case 'sql':
        return await this.#sql(command)
      case 'set':
        this.#set(command.name, command.expression)
        return undefined
      case 'if':
        this.#conditions.enter(isTrue(this.#value(command.expression, 'if')))
        return undefined
      case 'elif':
        if (!this.#conditions.wantsElif) this.#conditions.skipElif()
        else this.#conditions.elif(isTrue(this.#value(command.expression, 'elif')))
        return undefined
      case 'else':
        this.#conditions.else()
        return undefined
      case 'endif':
        this.#conditions.leave()
        return undefined
      case 'sleep':
        return await this.#sleep(command.amount, command.unitUs)
      default:
        return await this.#pipeline(command.kind)
    }
  }

  #failed(command: string, message: string, sqlstate?: string): ClientAborted {
    return new ClientAborted(
      `client ${this.id} aborted in command ${this.#commandIndex} (${command}) of script ${this.#scriptIndex}; ${message}`,
      sqlstate,
    )
  }

  #value(expression: Expression, command: string): Value {
    try {
      return evaluate(expression, {
        prng: this.#prng,
        variable: (name) => this.variables.value(name),
        debug: (line) =>
          this.#group.say(
            `debug(script=${this.#scriptIndex},command=${this.#commandIndex + 1}): ${line}`,
          ),
      })
    } catch (error) {
      if (!isEngineError(error)) throw error
      this.#group.log(error.message)
      throw this.#failed(command, 'evaluation of meta-command failed')
    }
  }

  #set(name: string, expression: Expression): void {
    const value = this.#value(expression, 'set')
    try {
      this.variables.setValue(name, value, 'set')
    } catch (error) {
      this.#group.log(toEngineError(error).message)
      throw this.#failed('set', 'assignment of meta-command failed')
    }
  }

  async #sleep(amount: string, unitUs: number): Promise<Ending | undefined> {
    const waitUs = sleepAmount(amount, unitUs, this.variables)
    if (typeof waitUs === 'string') {
      this.#group.log(waitUs)
      throw this.#failed('sleep', 'execution of meta-command failed')
    }
    this.#hasWaited = true
    await this.#group.sleep(waitUs / 1000)
    return this.#group.isOver ? 'interrupted' : undefined
  }

  get #open(): BenchConnection {
    return this.#connection as BenchConnection
  }

  #parameters(command: SqlCommand): (string | null)[] {
    return command.template.names.map((name) => this.variables.text(name) ?? null)
  }

  async #sql(command: SqlCommand): Promise<Ending | undefined> {
    if (this.#isPipelining) {
      if (command.results !== undefined) {
        const { mode } = command.results
        throw this.#failed(mode, `\\${mode} is not allowed in pipeline mode`)
      }
      this.#queue(command, this.#commandIndex)
      return undefined
    }
    this.#hasWaited = true
    return this.#judge(await this.#send(command), command)
  }

  async #send(command: SqlCommand): Promise<Outcome> {
    const { protocol } = this.#group.plan
    const keep = command.results !== undefined
    if (protocol === 'simple')
      return await this.#open.simple(fillSql(command.template, this.variables), keep)
    if (protocol === 'prepared') await this.#prepare(command, this.#commandIndex)
    this.#queue(command, this.#commandIndex)
    return await this.#open.sync(keep)
  }

  #queue(command: SqlCommand, index: number): void {
    const parameters = this.#parameters(command)
    if (this.#group.plan.protocol === 'extended')
      this.#open.queueExtended(command.parameterSql, parameters)
    else this.#open.queuePrepared(this.#group.statementName(this.#scriptIndex, index), parameters)
  }

  /** Prepares once a connection; a failure is only told, the execution then fails. */
  async #prepare(command: SqlCommand, index: number): Promise<void> {
    const name = this.#group.statementName(this.#scriptIndex, index)
    if (this.#open.isPrepared(name)) return
    const outcome = await this.#open.prepare(name, command.parameterSql)
    if (outcome.error !== undefined) this.#group.log(errorText(outcome.error))
  }

  #judge(outcome: Outcome, command?: SqlCommand): Ending | undefined {
    if (outcome.lost !== undefined) throw this.#lost(outcome)
    if (outcome.error !== undefined) {
      const sqlstate = outcome.error['C'] ?? ''
      this.#sqlstate = sqlstate
      const ending = retriable[sqlstate]
      if (ending !== undefined) return ending
      throw new ClientAborted(
        `client ${this.id} script ${this.#scriptIndex} aborted in command ${this.#commandIndex} query ${outcome.queryIndex}: ${errorText(outcome.error)}`,
        sqlstate,
      )
    }
    if (command?.results === undefined) return undefined
    const problem = keepResults(outcome.results, command.results, this.variables)
    if (problem === undefined) return undefined
    throw new ClientAborted(
      `client ${this.id} script ${this.#scriptIndex} command ${this.#commandIndex} query ${problem.queryIndex}: ${problem.message}`,
    )
  }

  /** The last words of the server, if it had any, then pgbench's line. */
  #lost(outcome: Outcome): ClientAborted {
    const { reconnectMs, verboseErrors } = this.#group.plan
    const words = outcome.error === undefined ? outcome.lost?.message : errorText(outcome.error)
    if (words && (reconnectMs === undefined || verboseErrors)) this.#group.log(words)
    const sqlstate = outcome.error?.['C'] ?? outcome.lost?.sqlstate
    return this.#failed('SQL', 'perhaps the backend died while processing', sqlstate)
  }

  async #pipeline(
    kind: 'startpipeline' | 'endpipeline' | 'syncpipeline',
  ): Promise<Ending | undefined> {
    if (kind === 'startpipeline') {
      await this.#startPipeline()
      return undefined
    }
    if (!this.#isPipelining) throw this.#failed(kind, 'not in pipeline mode')
    this.#hasWaited = true
    // \syncpipeline waits here too: what follows is sent when the server has answered.
    const outcome = await this.#open.sync()
    if (kind === 'endpipeline') this.#isPipelining = false
    return this.#judge(outcome)
  }

  async #startPipeline(): Promise<void> {
    const { protocol } = this.#group.plan
    if (protocol === 'simple')
      throw this.#failed('startpipeline', 'cannot use pipeline mode with the simple query protocol')
    if (protocol === 'prepared') await this.#preparePipeline()
    if (this.#isPipelining) throw this.#failed('startpipeline', 'already in pipeline mode')
    this.#isPipelining = true
  }

  /** All statements up to \endpipeline, before the pipeline begins. */
  async #preparePipeline(): Promise<void> {
    const { commands } = this.#group.scripts[this.#scriptIndex]!
    for (let i = this.#commandIndex + 1; i < commands.length; i++) {
      const command = commands[i] as Command
      if (command.kind === 'endpipeline') return
      if (command.kind === 'sql') await this.#prepare(command, i)
    }
  }

  async #rollback(): Promise<boolean> {
    if (!this.#open.isInTransaction) return true
    const outcome = await this.#open.simple('ROLLBACK')
    if (outcome.error === undefined && outcome.lost === undefined) return true
    this.#group.log(`client ${this.id} aborted while rolling back the transaction after an error`)
    return false
  }

  #abort(): false {
    this.#group.noteAbort(this.#connection, this.#sqlstate)
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

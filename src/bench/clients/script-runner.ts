/**
 * Runs a script for one client, command by command: what its variables hold, which branch it is in, what is sent.
 * Where nothing has to be waited for it does not wait: a transaction of one statement costs one promise here.
 * Source followed: advanceConnectionState, executeMetaCommand, sendCommand in pgbench.c.
 */
import { type EngineError, isEngineError, toEngineError } from '../../errors/engine-error.js'
import type { Prng } from '../../topology/prng.js'
import type { ErrorFields } from '../../wire/error-response.js'
import type { Computation, EvaluationContext } from '../script/compile.js'
import { keepResults } from '../script/keep-results.js'
import type { Command, MetaCommand, SqlCommand } from '../script/script.js'
import { sleepAmount } from '../script/sleep-amount.js'
import { isTrue, type Value } from '../script/value.js'
import { fillSql, Variables } from '../script/variables.js'
import { type BenchConnection, errorText, type Outcome } from './bench-connection.js'
import { ClientAborted, type Ending, isServerGone, retriable } from './client-ending.js'
import type { ClientGroup } from './client-group.js'
import { ConditionStack } from './condition-stack.js'
import { runShell, shellInteger, shellText } from './shell-command.js'
import { addSample } from './stats.js'

/** What a timer of Node takes. */
const LONGEST_MS = 2_147_483_647

/** A command of a script as --debug tells it. */
function wordsOf(command: MetaCommand & { readonly shown: string }): string {
  if (command.kind === 'set') return `set ${command.name}`
  if (command.kind === 'sleep') return command.shown.trim().replace(/^\\/, '')
  return command.kind
}

export class ScriptRunner implements EvaluationContext {
  readonly variables = new Variables()
  prng: Prng
  /** Number of the command that runs or ran last. */
  commandIndex = 0
  /** Something was waited for since this was last set to false. */
  hasWaited = false
  /** Of the error with which the last run ended. */
  sqlstate: string | undefined
  readonly #client: number
  readonly #group: ClientGroup
  readonly #conditions = new ConditionStack()
  #connection!: BenchConnection
  #scriptIndex = 0
  #isPipelining = false

  constructor(client: number, group: ClientGroup, prng: Prng) {
    this.#client = client
    this.#group = group
    this.prng = prng
  }

  /** Runs the script once from its start. */
  async run(scriptIndex: number, connection: BenchConnection): Promise<Ending> {
    const { name, commands } = this.#group.scripts[scriptIndex]!
    this.#scriptIndex = scriptIndex
    this.#connection = connection
    this.#conditions.reset()
    this.#isPipelining = false
    this.sqlstate = undefined
    if (this.#group.plan.debug) this.#trace('executing script', `"${name}"`)
    try {
      for (let i = 0; i < commands.length; i++) {
        this.commandIndex = i
        const command = commands[i]!
        if (!this.#conditions.isActive && this.#skip(command)) continue
        const step = this.#group.plan.reportPerCommand
          ? this.#timed(command)
          : this.#execute(command)
        const ending = step instanceof Promise ? await step : step
        if (ending !== undefined) return ending
      }
      if (!this.#isPipelining) return 'done'
      throw new ClientAborted(
        `client ${this.#client} aborted: end of script reached with pipeline open`,
      )
    } catch (error) {
      if (!(error instanceof ClientAborted)) throw error
      return this.#aborted(error)
    }
  }

  /** Ends a transaction that is open behind an error. False: the connection does not take it. */
  async rollback(connection: BenchConnection): Promise<boolean> {
    if (!connection.isInTransaction) return true
    const outcome = await connection.simple('ROLLBACK')
    if (outcome.error === undefined && outcome.lost === undefined) return true
    this.#group.log(
      `client ${this.#client} aborted while rolling back the transaction after an error`,
    )
    return false
  }

  variable(name: string): Value | undefined {
    return this.variables.value(name)
  }

  debug(line: string): void {
    this.#group.say(`debug(script=${this.#scriptIndex},command=${this.commandIndex + 1}): ${line}`)
  }

  /** For --debug, as pgbench words it. */
  #trace(what: string, of = ''): void {
    const { plan, log } = this.#group
    if (plan.debug) log(`client ${this.#client} ${what}${of && ` ${of}`}`, 'info')
  }

  #aborted({ message, sqlstate }: ClientAborted): 'lost' | 'aborted' {
    const { plan, log } = this.#group
    this.sqlstate = sqlstate
    const isLost = plan.reconnectMs !== undefined && isServerGone(sqlstate)
    if (!isLost) log(message)
    else if (plan.verboseErrors) log(message, 'info')
    return isLost ? 'lost' : 'aborted'
  }

  async #timed(command: Command): Promise<Ending | undefined> {
    const { clock } = this.#group
    const startMs = clock.monotonicMs()
    const index = this.commandIndex
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

  #execute(command: Command): Ending | undefined | Promise<Ending | undefined> {
    if (command.kind === 'sql') return this.#sql(command)
    if (this.#group.plan.debug) this.#trace('executing', `\\${wordsOf(command)}`)
    return this.#meta(command)
  }

  #meta(command: MetaCommand): Ending | undefined | Promise<Ending | undefined> {
    switch (command.kind) {
      case 'set':
        this.#set(command.name, command.compute)
        return undefined
      case 'if':
        this.#conditions.enter(isTrue(this.#value(command.compute, 'if')))
        return undefined
      case 'elif':
        if (!this.#conditions.wantsElif) this.#conditions.skipElif()
        else this.#conditions.elif(isTrue(this.#value(command.compute, 'elif')))
        return undefined
      case 'else':
        this.#conditions.else()
        return undefined
      case 'endif':
        this.#conditions.leave()
        return undefined
      case 'sleep':
        return this.#sleep(command.amount, command.unitUs)
      case 'shell':
        return this.#shell(command.words, command.variable)
      default:
        return this.#pipeline(command.kind)
    }
  }

  #failed(command: string, message: string, sqlstate?: string): ClientAborted {
    return new ClientAborted(
      `client ${this.#client} aborted in command ${this.commandIndex} (${command}) of script ${this.#scriptIndex}; ${message}`,
      sqlstate,
    )
  }

  #value(compute: Computation, command: string): Value {
    try {
      return compute(this)
    } catch (error) {
      if (!isEngineError(error)) throw error
      this.#group.log(error.message)
      throw this.#failed(command, 'evaluation of meta-command failed')
    }
  }

  #set(name: string, compute: Computation): void {
    const value = this.#value(compute, 'set')
    try {
      this.variables.setValue(name, value, 'set')
    } catch (error) {
      this.#group.log(toEngineError(error).message)
      throw this.#failed('set', 'assignment of meta-command failed')
    }
  }

  /** To its end, whether the run's time is over or not: what has begun is finished. */
  async #sleep(amount: string, unitUs: number): Promise<undefined> {
    const waitUs = sleepAmount(amount, unitUs, this.variables)
    if (typeof waitUs === 'string') {
      this.#group.log(waitUs)
      throw this.#failed('sleep', 'execution of meta-command failed')
    }
    this.hasWaited = true
    await this.#group.clock.sleep(Math.min(waitUs / 1000, LONGEST_MS))
    return undefined
  }

  async #shell(words: readonly string[], variable: string | undefined): Promise<undefined> {
    const name = variable === undefined ? 'shell' : 'setshell'
    const fail = (problem: string): ClientAborted => {
      this.#group.log(problem)
      return this.#failed(name, 'execution of meta-command failed')
    }
    const text = shellText(words, this.variables)
    if ('problem' in text) throw fail(text.problem)
    this.hasWaited = true
    const { code, line } = await runShell(text.command, variable !== undefined)
    if (variable === undefined) {
      if (code !== 0) throw fail(`${words[0]}: could not launch shell command`)
      return undefined
    }
    if (line === undefined) throw fail(`${words[0]}: could not read result of shell command`)
    const result = shellInteger(line)
    if (result === undefined)
      throw fail(`${words[0]}: shell command must return an integer (not "${line}")`)
    this.variables.setValue(variable, result, 'setshell')
    return undefined
  }

  #parameters(command: SqlCommand): (string | null)[] {
    return command.template.names.map((name) => this.variables.text(name) ?? null)
  }

  #sql(command: SqlCommand): Promise<Ending | undefined> | undefined {
    if (this.#isPipelining) {
      if (command.results !== undefined) {
        const { mode } = command.results
        throw this.#failed(mode, `\\${mode} is not allowed in pipeline mode`)
      }
      this.#queue(command, this.commandIndex)
      return undefined
    }
    this.hasWaited = true
    return this.#answer(command)
  }

  async #answer(command: SqlCommand): Promise<Ending | undefined> {
    const { protocol } = this.#group.plan
    if (protocol === 'prepared') await this.#prepare(command, this.commandIndex)
    return this.#judge(await this.#send(command), command)
  }

  #send(command: SqlCommand): Promise<Outcome> {
    const keep = command.results !== undefined
    if (this.#group.plan.protocol === 'simple') {
      const sql = fillSql(command.template, this.variables)
      this.#trace('sending', sql)
      return this.#connection.simple(sql, keep)
    }
    this.#queue(command, this.commandIndex)
    return this.#connection.sync(keep)
  }

  #queue(command: SqlCommand, index: number): void {
    const parameters = this.#parameters(command)
    if (this.#group.plan.protocol === 'extended') {
      this.#trace('sending', command.parameterSql)
      this.#connection.queueExtended(command.parameterSql, parameters)
    } else {
      const name = this.#group.statementName(this.#scriptIndex, index)
      this.#trace('sending', name)
      this.#connection.queuePrepared(name, parameters)
    }
  }

  /** Prepares once a connection; a failure is only told, the execution then fails. */
  async #prepare(command: SqlCommand, index: number): Promise<void> {
    const name = this.#group.statementName(this.#scriptIndex, index)
    if (this.#connection.isPrepared(name)) return
    this.#trace('preparing', name)
    const outcome = await this.#connection.prepare(name, command.parameterSql)
    if (outcome.error !== undefined) this.#group.log(errorText(outcome.error))
  }

  #judge(outcome: Outcome, command?: SqlCommand): Ending | undefined {
    this.#trace('receiving')
    if (outcome.error !== undefined) return this.#onError(outcome.error, outcome)
    if (outcome.lost !== undefined) throw this.#lost(outcome.lost)
    if (outcome.isCopy) throw new ClientAborted('COPY is not supported in a script, aborting')
    if (command?.results === undefined) return undefined
    const problem = keepResults(outcome.results, command.results, this.variables)
    if (problem === undefined) return undefined
    if (problem.detail !== undefined) this.#group.log(problem.detail)
    throw new ClientAborted(
      `client ${this.#client} script ${this.#scriptIndex} command ${this.commandIndex} query ${problem.queryIndex}: ${problem.message}`,
    )
  }

  /** What the server said, also when it ended the connection with it. */
  #onError(error: ErrorFields, { queryIndex, lost }: Outcome): Ending {
    const sqlstate = error['C'] ?? ''
    const text = errorText(error)
    this.sqlstate = sqlstate
    const ending = lost === undefined ? retriable[sqlstate] : undefined
    if (ending === undefined)
      throw new ClientAborted(
        `client ${this.#client} script ${this.#scriptIndex} aborted in command ${this.commandIndex} query ${queryIndex}: ${text}`,
        sqlstate,
      )
    if (this.#group.plan.verboseErrors)
      this.#group.log(
        `client ${this.#client} got an error in command ${this.commandIndex} (SQL) of script ${this.#scriptIndex}; ${text}`,
        'info',
      )
    return ending
  }

  #lost({ message, sqlstate }: EngineError): ClientAborted {
    const { reconnectMs, verboseErrors } = this.#group.plan
    if (message && (reconnectMs === undefined || verboseErrors)) this.#group.log(message)
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
    this.hasWaited = true
    // \syncpipeline waits here too: what follows is sent when the server has answered.
    const outcome = await this.#connection.sync()
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
    for (let i = this.commandIndex + 1; i < commands.length; i++) {
      const command = commands[i]!
      if (command.kind === 'endpipeline') return
      if (command.kind === 'sql') await this.#prepare(command, i)
    }
  }
}

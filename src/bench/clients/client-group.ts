/**
 * What the clients of one thread share: connections, time, rate and counts. Knows nothing of reports.
 * Source followed: threadRun, chooseScript, processXactStats in pgbench.c.
 */
import type { Clock } from '../../base/clock.js'
import { HostBook } from '../../client/host-book.js'
import { builtInStrategy } from '../../client/strategy.js'
import type { Conninfo } from '../../topology/conninfo.js'
import { Prng } from '../../topology/prng.js'
import { nodesOf, type RunPlan } from '../run-plan.js'
import { poissonDelay, uniform } from '../script/random.js'
import { parseScript, type Script } from '../script/script.js'
import { BenchConnection } from './bench-connection.js'
import { type Connector, makeConnector } from './bench-connector.js'
import {
  type ConnectionSource,
  keptConnection,
  PickedConnections,
  type Picking,
} from './connection-source.js'
import { SilenceBook } from './silences.js'
import {
  addSample,
  type CommandStats,
  type GroupStats,
  groupStats,
  noteDone,
  noteError,
  type TransactionStats,
} from './stats.js'
import { type LoggedTransaction, TransactionLog } from './transaction-log.js'

/** A host that could not be reached is not picked so long while another can be. */
const BLOCKED_MS = 5000

/** Seeds of a group, drawn from the run's seed. */
export interface GroupSeeds {
  readonly clients: readonly { readonly id: number; readonly seed: bigint }[]
  readonly defaultSeed: bigint
  readonly choose: bigint
  readonly throttle: bigint
  /** For the shuffles of load_balance_hosts=random. */
  readonly hosts: bigint
  /** Number of its thread. */
  readonly thread: number
  /** For the lines of --log that are kept. */
  readonly sample: bigint
}

export interface GroupTools {
  readonly clock: Clock
  /** An error or note, for stderr with the program's name before it. */
  log(message: string, level?: 'error' | 'info'): void
  /** A line for stderr as it is. */
  say(line: string): void
}

type Transaction = LoggedTransaction & {
  readonly ending: 'done' | 'serialization' | 'deadlock' | 'lost'
  /** Of the error with which it failed. */
  readonly sqlstate: string | undefined
}

export class ClientGroup {
  readonly plan: RunPlan
  readonly clock: Clock
  readonly scripts: readonly Script[]
  readonly stats: GroupStats
  readonly log: GroupTools['log']
  readonly say: GroupTools['say']
  isOver = false
  readonly #connector: Connector
  readonly #makeConnector: (own: Conninfo, nodeOf: (index: number) => number) => Connector
  /** To one node alone, by its number. */
  readonly #connectors = new Map<number, Connector>()
  readonly #picking: Picking | undefined
  readonly #statementNames: readonly (readonly string[])[]
  readonly #nodeOf: readonly number[]
  readonly #chooser: Prng
  readonly #throttle: Prng
  readonly #totalWeight: bigint
  readonly #stop = new AbortController()
  readonly #transactionLog: TransactionLog | undefined
  #nextStartUs = 0
  /** One a node, from the start of the run. */
  #books: SilenceBook[] = []
  /** Between the monotonic clock and the time of day, in steps as fine as the former's. */
  readonly #dayOffsetMs: number

  constructor(plan: RunPlan, seeds: GroupSeeds, tools: GroupTools) {
    this.plan = plan
    this.clock = tools.clock
    this.#dayOffsetMs = tools.clock.nowMs() - tools.clock.monotonicMs()
    this.log = tools.log
    this.say = tools.say
    this.scripts = plan.scripts.map(({ name, text, weight }) =>
      parseScript(name, text, weight, plan.allowsShell),
    )
    let statements = 0
    this.#statementNames = this.scripts.map((script) =>
      script.commands.map((command) => (command.kind === 'sql' ? `P_${statements++}` : '')),
    )
    this.#totalWeight = this.scripts.reduce((sum, script) => sum + BigInt(script.weight), 0n)
    const { nodes, indexOf } = nodesOf(plan.conninfo)
    this.#nodeOf = indexOf
    const counts = this.scripts.map((script) => script.commands.length)
    this.stats = groupStats(counts, nodes.length, this.clock.monotonicMs())
    const random = Prng.ofSeed(seeds.hosts)
    this.#makeConnector = (own, nodeOf) =>
      makeConnector(own, this.clock, random, (index, sqlstate) => {
        if (index === undefined) return
        const node = nodeOf(index)
        this.stats.nodes[node]!.connectFailures++
        this.#books[node]?.fault(sqlstate, this.#dayMs())
      })
    this.#connector = this.#makeConnector(plan.conninfo, (index) => indexOf[index] as number)
    if (plan.strategy !== undefined) {
      this.#picking = {
        book: new HostBook(plan.conninfo, this.clock),
        strategy: builtInStrategy(plan.strategy),
        random,
        clock: this.clock,
        retriesAllDown: 1,
        blocklistTimeoutMs: BLOCKED_MS,
      }
    }
    this.#chooser = Prng.ofSeed(seeds.choose)
    this.#throttle = Prng.ofSeed(seeds.throttle)
    this.#transactionLog =
      plan.log &&
      new TransactionLog({
        plan: plan.log,
        thread: seeds.thread,
        seed: seeds.sample,
        hasRate: plan.ratePerSec !== undefined,
        hasRetries: plan.maxTries !== 1,
        isDetailed: plan.failuresDetailed,
        nowMs: () => this.#dayMs(),
      })
  }

  #dayMs(): number {
    return this.#dayOffsetMs + this.clock.monotonicMs()
  }

  /** The clock of the run starts now; after the plan's duration it is over. */
  begin(): { cancel(): void } | undefined {
    const startMs = this.clock.monotonicMs()
    this.#nextStartUs = startMs * 1000
    for (const node of this.stats.nodes) node.startMs = startMs
    this.#books = this.stats.nodes.map(() => new SilenceBook(this.#dayMs()))
    this.#transactionLog?.begin()
    const { durationMs } = this.plan
    return durationMs === undefined ? undefined : this.clock.after(durationMs, () => this.stop())
  }

  /** Everything was noted. */
  end(): void {
    for (const [i, book] of this.#books.entries()) {
      book.end()
      this.stats.nodes[i]!.silences = book.silences
      this.stats.nodes[i]!.faults = book.faults
    }
    this.#transactionLog?.close()
  }

  /** Clients finish the transaction that they are in. */
  stop(): void {
    this.isOver = true
    this.#stop.abort()
  }

  async sleep(delayMs: number): Promise<void> {
    await this.clock.sleep(Math.max(0, delayMs), this.#stop.signal)
  }

  /** For one client. */
  connectionSource(): ConnectionSource {
    if (!this.#picking) return keptConnection(() => this.#connect(this.#connector))
    return new PickedConnections(this.#picking, (host) =>
      this.#connect(this.#connectorOf(host), host),
    )
  }

  #connectorOf(host: number): Connector {
    const own = this.#picking!.book.conninfo(host)
    const connector = this.#connectors.get(host) ?? this.#makeConnector(own, () => host)
    this.#connectors.set(host, connector)
    return connector
  }

  async #connect(connector: Connector, host?: number): Promise<BenchConnection> {
    const startMs = this.clock.monotonicMs()
    const { server, hostIndex } = await connector.open()
    const elapsedUs = (this.clock.monotonicMs() - startMs) * 1000
    const nodeIndex = host ?? (this.#nodeOf[hostIndex] as number)
    const node = this.stats.nodes[nodeIndex]!
    node.connections++
    node.connectTime.record(elapsedUs)
    this.stats.connectUs += elapsedUs
    return new BenchConnection(server, nodeIndex, (line) => this.say(line))
  }

  chooseScript(): number {
    if (this.scripts.length === 1) return 0
    let weight = uniform(this.#chooser, 0n, this.#totalWeight - 1n)
    let index = 0
    for (;;) {
      weight -= BigInt(this.scripts[index]!.weight)
      if (weight < 0n) return index
      index++
    }
  }

  /**
   * With a rate: waits for the next start of the Poisson process and gives its time; undefined when the run is over
   * before it. Without one: now.
   */
  async waitForTurn(): Promise<number | undefined> {
    const { ratePerSec, threads, durationMs } = this.plan
    if (ratePerSec === undefined) return this.clock.monotonicMs()
    const startUs = this.#nextStartUs + poissonDelay(this.#throttle, (1e6 / ratePerSec) * threads)
    this.#nextStartUs = startUs
    const waitMs = startUs / 1000 - this.clock.monotonicMs()
    if (waitMs > 0) await this.sleep(waitMs)
    return durationMs !== undefined && this.isOver ? undefined : startUs / 1000
  }

  /** Numbered over all scripts, as pgbench names them. */
  statementName(scriptIndex: number, commandIndex: number): string {
    return this.#statementNames[scriptIndex]![commandIndex]!
  }

  commandStats(scriptIndex: number, commandIndex: number): CommandStats {
    return this.stats.commands[scriptIndex]![commandIndex]!
  }

  /** Past the latency limit since `fromMs`. */
  isLate(fromMs: number): boolean {
    const { latencyLimitMs } = this.plan
    return latencyLimitMs !== undefined && this.clock.monotonicMs() - fromMs > latencyLimitMs
  }

  /** A start of the schedule that the limit has overtaken before it began. */
  isTooLate(scheduledMs: number): boolean {
    return this.plan.ratePerSec !== undefined && this.isLate(scheduledMs)
  }

  noteSkipped(client: number, number: number, script: number): void {
    this.stats.total.skipped++
    this.stats.scripts[script]!.skipped++
    const ending = 'skipped'
    this.#transactionLog?.note({ client, number, script, ending, latencyUs: 0, lagUs: 0, tries: 1 })
  }

  /** `nowMs` is the monotonic time at which it ended. */
  noteTransaction(nodeIndex: number, transaction: Transaction, nowMs: number): void {
    this.#count(this.stats.total, transaction)
    this.#count(this.stats.scripts[transaction.script]!, transaction)
    this.#transactionLog?.note(transaction)
    if (transaction.ending === 'done') {
      const { latencyLimitMs } = this.plan
      if (latencyLimitMs !== undefined && transaction.latencyUs > latencyLimitMs * 1000)
        this.stats.late++
      noteDone(this.stats.nodes[nodeIndex]!, transaction.latencyUs, nowMs)
      this.#books[nodeIndex]!.good(this.#dayOffsetMs + nowMs)
    } else this.#noteFailure(nodeIndex, transaction.sqlstate)
    if (this.plan.ratePerSec !== undefined) this.stats.lag.record(transaction.lagUs)
  }

  #count(stats: TransactionStats, { ending, tries, latencyUs, lagUs }: Transaction): void {
    if (tries > 1) {
      stats.retries += tries - 1
      stats.retried++
    }
    if (ending === 'serialization') stats.serializationFailures++
    else if (ending === 'deadlock') stats.deadlockFailures++
    else if (ending === 'lost') stats.connectionFailures++
    else {
      stats.done++
      addSample(stats.latencyUs, latencyUs)
      addSample(stats.lagUs, lagUs)
    }
  }

  /** A client was aborted; `sqlstate` of what the server said, if it is to blame. */
  noteAbort(connection: BenchConnection | undefined, sqlstate: string | undefined): void {
    if (connection !== undefined) this.#noteFailure(connection.nodeIndex, sqlstate)
  }

  #noteFailure(nodeIndex: number, sqlstate: string | undefined): void {
    noteError(this.stats.nodes[nodeIndex]!, this.clock.monotonicMs())
    if (sqlstate !== undefined) this.#books[nodeIndex]?.fault(sqlstate, this.#dayMs())
  }
}

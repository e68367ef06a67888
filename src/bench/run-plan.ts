/** What a run is to do, as plain data that can be handed to a worker thread. */
import type { StrategyName } from '../client/strategy.js'
import type { Conninfo } from '../topology/conninfo.js'

export const protocols = ['simple', 'extended', 'prepared'] as const
export type Protocol = (typeof protocols)[number]

export interface ScriptSource {
  readonly name: string
  readonly text: string
  readonly weight: number
}

/** What --log writes. */
export interface LogPlan {
  /** The file is named PREFIX.PID, and .N behind it for further threads. */
  readonly prefix: string
  readonly processId: number
  /** Part of the transactions that is written. */
  readonly samplingRate?: number
  /** A line an interval instead. */
  readonly aggregateMs?: number
}

export interface RunPlan {
  readonly conninfo: Conninfo
  readonly scripts: readonly ScriptSource[]
  readonly protocol: Protocol
  readonly clients: number
  readonly threads: number
  /** Per client; not used with a duration. */
  readonly transactions: number
  readonly durationMs?: number
  /** A new connection for every transaction. */
  readonly reconnect: boolean
  /** How the host of each transaction is picked; absent: by libpq's rules, once a connection. */
  readonly strategy?: StrategyName
  /** Transactions a second over all clients. */
  readonly ratePerSec?: number
  /** Tries of a transaction that failed by serialization or deadlock; 0: no limit. */
  readonly maxTries: number
  readonly reportPerCommand: boolean
  readonly verboseErrors: boolean
  /** How long a client whose connection is lost tries to connect again; absent: it is aborted at once. */
  readonly reconnectMs?: number
  /** What clients do is told. */
  readonly debug?: boolean
  /** Scripts may run commands of the system's shell. */
  readonly allowsShell?: boolean
  /** Slower transactions are counted; with a rate, those that begin too late are skipped. */
  readonly latencyLimitMs?: number
  /** Failures are reported by kind. */
  readonly failuresDetailed: boolean
  readonly log?: LogPlan
  /** Variables of -D. */
  readonly variables: Readonly<Record<string, string>>
  readonly scale: number
  readonly seed: string
}

/** Nodes of a connection string: host and port, and how often each is listed. */
export interface BenchNode {
  readonly name: string
  readonly host: string
  readonly port: number
  weight: number
}

/** Equal entries are one node with a weight; `indexOf[i]` is the node of the i-th entry. */
export function nodesOf(conninfo: Conninfo): { nodes: BenchNode[]; indexOf: number[] } {
  const nodes: BenchNode[] = []
  const indexOf = conninfo.hosts.map(({ host, hostaddr, port }) => {
    const name = `${host.includes(':') ? `[${host}]` : host}:${port}`
    const at = nodes.findIndex((node) => node.name === name)
    if (at >= 0) {
      nodes[at]!.weight++
      return at
    }
    return nodes.push({ name, host: hostaddr ?? host, port, weight: 1 }) - 1
  })
  return { nodes, indexOf }
}

/** Options that a balanced pool and a balanced connection share, and what they become. */
import { systemClock } from '../base/clock.js'
import { systemRandom } from '../pg/connect.js'
import { localEnvironment } from '../pg/local-environment.js'
import { type Conninfo, parseConninfo } from '../topology/conninfo.js'
import type { Uint64Source } from '../topology/prng.js'
import { type CheckerOptions, type ExceptionChecker, loadChecker } from './exception-checker.js'
import { HostBook } from './host-book.js'
import type { PickOptions } from './pick-host.js'
import { type BalanceStrategy, loadStrategy, type StrategyName } from './strategy.js'

export interface BalanceOptions extends CheckerOptions {
  /** Which host is used: a name, an object, or the path of an ES module; random when absent. */
  readonly strategy?: StrategyName | BalanceStrategy | string
  /** With server_affinity: hosts as `host:port`, the preferred first; absent: as in the connection string. */
  readonly serverAffinityOrder?: readonly string[]
  /** Which errors leave a host: a function or the path of an ES module, whose `true` is a yes; what throws leaves it to the standard one. Absent: SQLSTATE 08, a broken connection, and what follows. */
  readonly exceptionChecker?: ExceptionChecker | string
  /** Rounds over all hosts before a pick fails; 1 when absent. */
  readonly retriesAllDown?: number
  /** How long a host that failed is not asked while another can be had, ms; 5000 when absent, 0: asked at once. */
  readonly blocklistTimeoutMs?: number
  /** application_name when the connection string names none. */
  readonly applicationName?: string
  /** Chance, for tests that repeat. */
  readonly random?: Uint64Source
}

export interface Balance extends PickOptions {
  readonly book: HostBook
  readonly checker: ExceptionChecker
  readonly applicationName: string | undefined
  /** Another host of the same user, database and options. */
  parseHost(host: string): Conninfo['hosts'][number]
}

/** @throws CONNINFO_INVALID, CLIENT_STRATEGY, CLIENT_EXCEPTION_CHECKER */
export async function openBalance(
  target: string | Conninfo,
  options: BalanceOptions,
): Promise<Balance> {
  const environment = localEnvironment()
  const conninfo = typeof target === 'string' ? parseConninfo(target, environment) : target
  const [first] = conninfo.hosts
  return {
    book: new HostBook(conninfo, systemClock),
    strategy: await loadStrategy(options.strategy, options.serverAffinityOrder),
    checker: await loadChecker(options.exceptionChecker, options),
    random: options.random ?? systemRandom(),
    clock: systemClock,
    retriesAllDown: Math.max(1, options.retriesAllDown ?? 1),
    blocklistTimeoutMs: options.blocklistTimeoutMs ?? 5000,
    applicationName: options.applicationName,
    parseHost: (host) => {
      const port = /:(\d+)$/.exec(host)?.[1]
      const name = port === undefined ? host : host.slice(0, -port.length - 1)
      const given = parseConninfo('', environment, {
        host: name.replace(/^\[(.*)\]$/, '$1'),
        port: port ?? String(first?.port ?? 5432),
        user: conninfo.user,
        dbname: conninfo.database,
        ...(first?.password === undefined ? {} : { password: first.password }),
      }).hosts[0]
      return given as Conninfo['hosts'][number]
    },
  }
}

/** What a proxy is lent: configuration, clock, and how servers are opened, statements read and clients accepted. */
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { LoadedConfig } from '../config/loaded-config.js'
import type { TwoPhaseStep } from '../executor/two-phase.js'
import type { ByteSocket } from '../net/byte-socket.js'
import type { NameCache } from '../net/name-cache.js'
import type { OpenServer } from '../pool/definition.js'
import type { SessionEnvironment } from '../session/environment.js'
import type { KnowledgeSources } from './databases/knowledge.js'
import type { Fleet } from './fleet.js'

export interface ProxyOptions {
  readonly config: LoadedConfig
  /** Reads the configuration again, for RELOAD. */
  readonly loadAgain: (settings?: ReadonlyMap<string, string>) => LoadedConfig
  readonly version: string
  readonly log: Log
  readonly clock: Clock
  /** Win over the file. */
  readonly host?: string
  readonly port?: number
  readonly random: () => number
  /** Tells when a host name has another address (`dns_ttl`). */
  readonly names?: NameCache
  readonly openServer: OpenServer
  readonly knowledge: Pick<KnowledgeSources, 'makePlanner' | 'readCatalog' | 'readNumbers'>
  /** Runs when the last client is gone, before `ended`. */
  readonly beforeEnd?: () => Promise<void>
  readonly acceptClient: (socket: ByteSocket, environment: SessionEnvironment) => Promise<void>
  /** Present in a worker: the others, and where connections come from. */
  readonly fleet?: Fleet
  /** Told of each step of each two-phase commit; for tests that end the process there. */
  readonly onTwoPhaseStep?: (step: TwoPhaseStep) => void
}

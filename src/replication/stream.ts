/**
 * One replication stream: pg-logical-replication's service with a plugin of our own.
 * What is acknowledged is only what `acknowledge` was told; nothing is acknowledged by having been received.
 * Keepalives that ask for a reply are answered at once, and a timer answers while the consumer applies.
 */
import { LogicalReplicationService } from 'pg-logical-replication'
import type { Clock, Timer } from '../base/clock.js'
import { engineError, toEngineError } from '../errors/engine-error.js'
import { type HostTarget, hostClientConfig } from '../pg/host-client.js'
import type { Change } from './change.js'
import { beforeLsn, type Lsn, maxLsn, parseLsn, printLsn } from './lsn.js'
import { PgoutputDecoder } from './pgoutput.js'

/** Well under the 60 s of wal_sender_timeout's default; a server set lower asks by keepalive before. */
const STATUS_PERIOD_MS = 5_000

export interface StreamOptions {
  readonly target: HostTarget
  readonly slot: string
  readonly publications: readonly string[]
  /** Where to begin; the server takes the later of this and what the slot has confirmed. */
  readonly startLsn: Lsn
  /** server_version_num. */
  readonly serverVersion: number
  /** Ask for binary column values. */
  readonly binary: boolean
  /** `none` leaves out what came from another subscription; needs PostgreSQL 16. */
  readonly origin: 'none' | 'any'
  readonly clock: Clock
}

/** Who hears of a stream. Called from the socket: must not throw; what it does slowly it does later. */
export interface StreamListener {
  onChange(change: Change): void
  /** Everything that the server had decoded up to `walEnd` has been handed over. */
  onKeepalive(walEnd: Lsn): void
  /** The stream is over; called once, not after `stop`. */
  onEnd(error: Error): void
}

type Decoded = { readonly change: Change } | { readonly error: Error }
/** The shape of the package's AbstractPlugin, which it does not export. */
type Plugin = Parameters<LogicalReplicationService['subscribe']>[0]
type ReplicationClient = Parameters<Plugin['start']>[0]

/** publication_names: a list of quoted identifiers in a quoted string. */
export function publicationNames(names: readonly string[]): string {
  return names.map((name) => `"${name.replace(/"/g, '""')}"`).join(',')
}

/** The highest pgoutput protocol that a server of this version speaks. */
export function protocolVersion(serverVersion: number): number {
  if (serverVersion >= 160_000) return 4
  if (serverVersion >= 150_000) return 3
  return serverVersion >= 140_000 ? 2 : 1
}

/** START_REPLICATION with our options. */
export function startCommand(options: StreamOptions): string {
  const quote = (text: string): string => `'${text.replace(/'/g, "''")}'`
  const settings = [
    `proto_version ${quote(String(protocolVersion(options.serverVersion)))}`,
    `publication_names ${quote(publicationNames(options.publications))}`,
  ]
  if (options.serverVersion >= 140_000) {
    settings.push(`messages 'true'`)
    if (options.binary) settings.push(`binary 'true'`)
  }
  if (options.serverVersion >= 160_000) settings.push(`origin ${quote(options.origin)}`)
  const slot = `"${options.slot.replace(/"/g, '""')}"`
  return `START_REPLICATION SLOT ${slot} LOGICAL ${printLsn(options.startLsn)} (${settings.join(', ')})`
}

class ChangePlugin implements Plugin {
  readonly options: StreamOptions
  readonly name = 'pgoutput'
  readonly #decoder = new PgoutputDecoder()
  client: ReplicationClient | undefined

  constructor(options: StreamOptions) {
    this.options = options
  }

  start(client: ReplicationClient): Promise<unknown> {
    this.client = client
    return client.query(startCommand(this.options))
  }

  /** An error thrown here would be thrown inside the socket's handler and end the process: it is returned. */
  parse(message: Buffer): Decoded {
    try {
      // The parser of node-postgres moves its memory under us: the message is copied once, tuples point into the copy.
      return { change: this.#decoder.decode(Buffer.from(message)) }
    } catch (error) {
      return { error: toEngineError(error) }
    }
  }
}

export class ReplicationStream {
  readonly #options: StreamOptions
  readonly #listener: StreamListener
  readonly #service: LogicalReplicationService
  readonly #plugin: ChangePlugin
  #acknowledged: Lsn
  #timer: Timer | undefined
  #over = false

  constructor(options: StreamOptions, listener: StreamListener) {
    this.#options = options
    this.#listener = listener
    this.#acknowledged = options.startLsn
    this.#plugin = new ChangePlugin(options)
    // Output is read in this session's settings: they are those of PostgreSQL's own subscriber, and UTC.
    const settings = {
      DateStyle: 'ISO',
      IntervalStyle: 'postgres',
      extra_float_digits: '3',
      TimeZone: 'UTC',
      statement_timeout: '0',
    }
    this.#service = new LogicalReplicationService(
      hostClientConfig(options.target, { applicationName: 'pgshard follow', settings }),
      { acknowledge: { auto: false, timeoutSeconds: 0 }, flowControl: { enabled: false } },
    )
  }

  /** Starts; resolves when the server has begun to stream. @throws REPLICATION_STREAM_LOST */
  async start(): Promise<void> {
    const service = this.#service
    service.on('data', (_lsn: string, decoded: Decoded) => this.#take(decoded))
    service.on('heartbeat', (lsn, _time, asked) => {
      if (this.#over) return
      this.#listener.onKeepalive(parseLsn(lsn))
      if (asked) this.#sendStatus()
    })
    service.on('error', (error) => this.#end(error))
    const started = new Promise<void>((resolve) => {
      service.on('start', () => resolve())
    })
    const ended = service
      .subscribe(this.#plugin, this.#options.slot, printLsn(this.#options.startLsn))
      .then(
        () => this.#lost('the server closed it'),
        (error: unknown) => this.#lost(error),
      )
    const failure = await Promise.race([started, ended])
    if (failure) {
      this.#over = true
      await service.destroy().catch(() => undefined)
      throw failure
    }
    ended.then((error) => this.#end(error)).catch(() => undefined)
    this.#armTimer()
  }

  /** All before `lsn` is durable where it had to go. Never goes back. */
  acknowledge(lsn: Lsn): void {
    const next = maxLsn(this.#acknowledged, lsn)
    if (next === this.#acknowledged) return
    this.#acknowledged = next
    this.#sendStatus()
  }

  get acknowledged(): Lsn {
    return this.#acknowledged
  }

  /** Stops reading the socket, so that what waits to be applied stays bounded. */
  pause(): void {
    this.#socket()?.pause()
  }

  resume(): void {
    this.#socket()?.resume()
  }

  async stop(): Promise<void> {
    this.#over = true
    this.#timer?.cancel()
    this.#socket()?.resume()
    await this.#service.destroy().catch(() => undefined)
  }

  #take(decoded: Decoded): void {
    if (this.#over) return
    if ('error' in decoded) this.#end(decoded.error)
    else this.#listener.onChange(decoded.change)
  }

  #sendStatus(): void {
    if (this.#over) return
    // The service sends the position after the one it is given. One byte too far would let the server
    // skip a commit that starts exactly there.
    this.#service.acknowledge(printLsn(beforeLsn(this.#acknowledged))).catch(() => undefined)
  }

  #armTimer(): void {
    this.#timer = this.#options.clock.after(STATUS_PERIOD_MS, () => {
      this.#sendStatus()
      if (!this.#over) this.#armTimer()
    })
  }

  #socket(): { pause(): void; resume(): void } | undefined {
    const client = this.#plugin.client as
      | { connection?: { stream?: { pause(): void; resume(): void } } }
      | undefined
    return client?.connection?.stream
  }

  #lost(error: unknown): Error {
    const { slot, target } = this.#options
    const reason = error instanceof Error ? error.message : String(error)
    const server = `${target.host}:${target.port}/${target.database}`
    return engineError('REPLICATION_STREAM_LOST', { slot, server, reason }, { cause: error })
  }

  #end(error: Error): void {
    if (this.#over) return
    this.#over = true
    this.#timer?.cancel()
    this.#service.destroy().catch(() => undefined)
    this.#listener.onEnd(error)
  }
}

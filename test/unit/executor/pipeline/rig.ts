/** Servers, a pool and clients for the pipeline, all of them scripted: no socket, no time but what a test says. */
import { Pipeline } from '../../../../src/executor/pipeline/pipeline.js'
import type { PipelinedClient, Unit } from '../../../../src/executor/pipeline/pipelined-client.js'
import type { ByteSocket } from '../../../../src/net/byte-socket.js'
import type { ClassFigures } from '../../../../src/plan/plan.js'
import type { Checkout } from '../../../../src/pool/checkout.js'
import type { ResourcePool } from '../../../../src/pool/resource-pool.js'
import { ServerConnection } from '../../../../src/server/server-connection.js'
import { Settings } from '../../../../src/server/settings.js'
import type { SharedStatement } from '../../../../src/server/shared-statement.js'
import { encodeErrorResponse } from '../../../../src/wire/error-response.js'
import { FrameWriter } from '../../../../src/wire/frame-writer.js'
import { FakeClock } from '../../../support/fake-clock.js'

const frame = (tag: string, write: (writer: FrameWriter) => void = () => undefined): Buffer => {
  const writer = new FrameWriter(64).begin(tag.charCodeAt(0))
  write(writer)
  return writer.end().take()
}

export const ready = frame('Z', (writer) => void writer.byte(0x49))
export const parseComplete = frame('1')
export const row = (text: string): Buffer =>
  frame('D', (writer) => void writer.int16(1).value(text))
export const status = (name: string, value: string): Buffer =>
  frame('S', (writer) => void writer.cstring(name).cstring(value))

export function failure(sqlstate: string, severity: 'ERROR' | 'FATAL' = 'ERROR'): Buffer {
  const writer = new FrameWriter(128)
  encodeErrorResponse(writer, { S: severity, V: severity, C: sqlstate, M: 'no' })
  return writer.take()
}

/** A row that says whose it is, and the end. */
export const answerFor = (text: string): Buffer =>
  Buffer.concat([row(text), frame('C', (writer) => void writer.cstring('SELECT 1')), ready])

/** What was asked of the socket of a server. */
class FakeSocket {
  onChunk: (chunk: Buffer) => void = () => undefined
  onDrain = () => undefined
  onClose: (error?: Error) => void = () => undefined
  readonly writes: string[] = []
  isPaused = false
  isDestroyed = false
  writableLength = 0

  write(bytes: Buffer, start = 0, end = bytes.length): boolean {
    this.writes.push(bytes.toString('latin1', start, end))
    return true
  }

  writeCopied(bytes: Buffer, start: number, end: number): boolean {
    return this.write(bytes, start, end)
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  end(): void {
    this.isDestroyed = true
  }

  destroy(): void {
    this.isDestroyed = true
  }
}

export class ScriptedServer {
  readonly socket = new FakeSocket()
  readonly connection: ServerConnection
  /** Ends of cancels that are on their way. */
  readonly cancels: (() => void)[] = []

  constructor() {
    this.connection = new ServerConnection(
      { host: 'h', port: 1, user: 'u', database: 'd' },
      {
        socket: this.socket as unknown as ByteSocket,
        parameters: new Map(),
        processId: 1,
        cancelKey: Buffer.alloc(4),
        preparedLimit: 100,
      },
    )
    this.connection.cancel = () => new Promise((resolve) => void this.cancels.push(resolve))
  }

  /** Bytes that come in one read. */
  says(...frames: Buffer[]): void {
    this.socket.onChunk(Buffer.concat(frames))
  }

  isLost(): void {
    this.socket.onClose()
  }
}

export class FakePool {
  readonly idle: ScriptedServer[]
  readonly limits = { checkoutTimeoutMs: 5000 }
  /** Callers beside those of the pipeline. */
  others = 0
  /** Places that the pipeline has in the queue. */
  readonly asked: {
    readonly timeoutMs: number
    readonly resolve: (checkout: Checkout<ServerConnection>) => void
    readonly reject: (error: unknown) => void
  }[] = []
  asksToGrow = 0
  readonly events: string[] = []

  constructor(servers: ScriptedServer[]) {
    this.idle = servers
  }

  grow(): void {
    this.asksToGrow++
  }

  get waiting(): number {
    return this.others + this.asked.length
  }

  checkout({ timeoutMs }: { timeoutMs: number }): Promise<Checkout<ServerConnection>> {
    return new Promise((resolve, reject) => {
      this.asked.push({ timeoutMs, resolve, reject })
    })
  }

  /** Serves the pipeline's place in the queue. */
  async serve(): Promise<void> {
    const server = this.idle.pop() as ScriptedServer
    this.asked.shift()?.resolve(this.#lend(server))
    await Promise.resolve()
  }

  tryCheckout(): Checkout<ServerConnection> | undefined {
    const server = this.waiting > 0 ? undefined : this.idle.pop()
    return server && this.#lend(server)
  }

  #lend(server: ScriptedServer): Checkout<ServerConnection> {
    const back = (what: string) => void this.events.push(what)
    return {
      resource: server.connection,
      isOpen: true,
      release: () => {
        this.idle.push(server)
        back('released')
      },
      discard: (why) => back(`discarded: ${why}`),
      [Symbol.dispose]: () => undefined,
    }
  }
}

export class FakeClient implements PipelinedClient {
  settings = Settings.none
  figures: ClassFigures = { runs: 10, hotRuns: 10, meanMs: 0.05, typicalMs: 0.05, replyBytes: 100 }
  statement: SharedStatement | undefined
  /** What it heard, in order. */
  readonly events: string[] = []
  readonly name: string
  queuedBytes = 0
  readonly #heard: Buffer[] = []

  constructor(name: string) {
    this.name = name
  }

  readonly output = ((client: FakeClient) => ({
    get queuedBytes() {
      return client.queuedBytes
    },
    forward: (buffer: Buffer, start: number, end: number) =>
      void client.#heard.push(Buffer.from(buffer.subarray(start, end))),
    append: (bytes: Buffer) => void client.#heard.push(bytes),
    pass: (buffer: Buffer, start: number, end: number): boolean => {
      this.output.forward(buffer, start, end)
      return this.output.flush()
    },
    flush: () => client.queuedBytes < 65_536,
  }))(this)

  /** The answer so far. */
  get answer(): Buffer {
    return Buffer.concat(this.#heard)
  }

  carriedBy(): void {
    this.events.push('carried')
  }

  unitFor(): Unit {
    const bytes = Buffer.from(`<${this.name}>`)
    return { bytes, length: bytes.length, prepares: this.statement }
  }

  parsed(): void {
    this.events.push('parsed')
  }

  failed(): void {
    this.events.push('failed')
  }

  parameterStatus(): void {
    this.events.push('status')
  }

  ready(): void {
    this.events.push('ready')
  }

  finished(): void {
    this.events.push('finished')
  }

  elsewhere(): void {
    this.events.push('elsewhere')
  }

  lost(_error: unknown, sawFatal: boolean): void {
    this.events.push(sawFatal ? 'lost with FATAL' : 'lost')
  }
}

export function rig(count = 1) {
  const clock = new FakeClock()
  const servers = Array.from({ length: count }, () => new ScriptedServer())
  const pool = new FakePool([...servers].reverse())
  const limits = { depth: 16, stallMs: 20, replyBufferBytes: 262_144 }
  const pipeline = new Pipeline(pool as unknown as ResourcePool<ServerConnection>, {
    clock,
    limits: () => limits,
  })
  const run = (name: string) => {
    const client = new FakeClient(name)
    const lane = pipeline.run(client, clock.monotonicMs())
    return { client, lane }
  }
  return { clock, servers, server: servers[0] as ScriptedServer, pool, limits, pipeline, run }
}

/** The end of this turn of the event loop, when joined writes leave. */
export const endOfTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Time goes by, and whoever looks at it has looked. */
export async function passes(clock: FakeClock, ms: number): Promise<void> {
  await clock.advance(ms)
  await endOfTick()
}

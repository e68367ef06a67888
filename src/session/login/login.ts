/**
 * A new connection until it is let in: TLS, cancel requests, the startup packet, authentication.
 * @see PostgreSQL documentation, "Start-up", "SSL Session Encryption"
 */
import { type EngineError, engineError, toEngineError } from '../../errors/engine-error.js'
import { type ByteSocket, LOCAL_ADDRESS } from '../../net/byte-socket.js'
import { encodeNegotiateProtocolVersion } from '../../wire/backend-messages.js'
import { FrameWriter } from '../../wire/frame-writer.js'
import {
  decodeStartupPacket,
  looksLikeTls,
  negotiate,
  type StartupMessage,
  type StartupPacket,
} from '../../wire/startup-messages.js'
import { errorFrame } from '../answers.js'
import type { SessionEnvironment } from '../environment.js'
import { authenticate } from './authenticate.js'
import { LoginChannel } from './login-channel.js'

/** From 3.2 on keys are longer than four bytes. `MyCancelKeyLength` in `src/backend/tcop/postgres.c`. */
const LONG_CANCEL_KEY_BYTES = 32
const CANCEL_KEY_BYTES = 4

export interface LoggedIn {
  readonly socket: ByteSocket
  readonly user: string
  readonly database: string
  readonly parameters: ReadonlyMap<string, string>
  /** What the protocol of this client has room for. */
  readonly cancelKeyBytes: number
  /** Bytes that the client sent behind its login. */
  readonly rest: readonly Buffer[]
}

export class Login {
  readonly #channel: LoginChannel
  readonly #environment: SessionEnvironment
  #leave: () => void = () => undefined
  /** Each request for encryption is answered once, as PostgreSQL does. */
  readonly #answered = new Set<'ssl' | 'gssenc'>()

  constructor(socket: ByteSocket, environment: SessionEnvironment) {
    this.#channel = new LoginChannel(socket)
    this.#environment = environment
  }

  /** Resolves when the user has proved to be who it is; undefined for a cancel request or a client that left. @throws the FATAL to send */
  async run(): Promise<LoggedIn | undefined> {
    const limit = this.#environment.loginTimeoutMs
    const timer = this.#environment.clock.after(limit, () => {
      this.#channel.stop(engineError('LOGIN_TIMEOUT', { limit }))
    })
    try {
      const message = await this.#startup()
      if (!message) return undefined
      return await this.#admit(message)
    } finally {
      timer.cancel()
    }
  }

  /** Gives back the place among those that log in. */
  leave(): void {
    this.#leave()
    this.#leave = () => undefined
  }

  /** Sends a FATAL on the socket in use now, and closes it. */
  refuse(error: EngineError | undefined): void {
    const { socket } = this.#channel
    if (error) socket.end(errorFrame(error, 'FATAL'))
    else socket.destroy()
  }

  /** Packets without a tag, until the one that starts a session. */
  async #startup(): Promise<StartupMessage | undefined> {
    await this.#directTls()
    for (;;) {
      const packet = decodeStartupPacket(await this.#channel.packet())
      switch (packet.kind) {
        case 'cancel':
          // Who cancels waits for the end of this connection before it goes on, and may have ended its own half.
          this.#channel.socket.holdOpen()
          await this.#environment.cancelByKey(packet.processId, packet.secret)
          this.#channel.socket.end()
          return undefined
        case 'gssenc':
        case 'ssl':
          await this.#negotiateEncryption(packet)
          break
        case 'unsupported':
          // a client this old cannot read our error
          if (packet.major < 3) throw engineError('LOGIN_LEFT')
          throw this.#unspoken(packet.major, packet.minor)
        case 'startup':
          return packet
      }
    }
  }

  /** A client of PostgreSQL 17 or later may begin with the handshake itself (`sslnegotiation=direct`). */
  async #directTls(): Promise<void> {
    const first = await this.#channel.peek()
    if (!looksLikeTls(first[0] as number)) return
    const { tls } = this.#environment
    // Nothing that we could say would be read.
    if (!tls || this.#isLocal) throw engineError('LOGIN_LEFT')
    await this.#channel.encryptDirectly(tls)
    // Without ALPN a client of another protocol could have been led here.
    if (!this.#channel.socket.tls?.isPostgresql) throw engineError('LOGIN_LEFT')
  }

  async #negotiateEncryption({ kind }: { kind: StartupPacket['kind'] }): Promise<void> {
    if (kind !== 'ssl' && kind !== 'gssenc') return
    if (this.#answered.has(kind)) {
      throw this.#unspoken(1234, kind === 'ssl' ? 5679 : 5680)
    }
    this.#answered.add(kind)
    const { tls } = this.#environment
    const { encrypted } = this.#channel.socket
    if (kind === 'gssenc' || !tls || encrypted || this.#isLocal) {
      this.#channel.write(Buffer.from('N'))
      return
    }
    await this.#channel.encrypt(tls)
  }

  #unspoken(major: number, minor: number): EngineError {
    const newest = this.#environment.protocolMinor(undefined)
    return engineError('LOGIN_PROTOCOL', { major, minor, newest })
  }

  async #admit(message: StartupMessage): Promise<LoggedIn> {
    const environment = this.#environment
    const { parameters } = message
    const newest = environment.protocolMinor(parameters.get('database') ?? parameters.get('user'))
    const negotiated = negotiate(message, newest)
    if (negotiated) {
      const writer = new FrameWriter()
      encodeNegotiateProtocolVersion(writer, negotiated)
      this.#channel.write(writer.take())
    }
    const user = parameters.get('user') ?? ''
    if (user === '') throw engineError('LOGIN_NO_USER')
    const database = parameters.get('database') ?? user
    const { socket } = this.#channel
    const { encrypted, tls } = socket
    if (environment.tlsRequired && !encrypted && !this.#isLocal)
      throw engineError('LOGIN_TLS_REQUIRED')
    this.#leave = environment.admitClient(user, database)
    const address = this.#isLocal ? undefined : socket.remoteAddress
    const request = { user, database, address, encrypted, peer: tls?.peer }
    const rules = await environment.loginRules(request)
    await authenticate(this.#channel, user, rules, environment.saltSecret)
    if (!rules.known) throw rules.refusal ?? engineError('LOGIN_REFUSED', { user, database })
    this.#channel.say({ kind: 'ok' })
    const cancelKeyBytes =
      Math.min(message.minor, newest) >= 2 ? LONG_CANCEL_KEY_BYTES : CANCEL_KEY_BYTES
    const rest = this.#channel.takeRest()
    return { socket, user, database, parameters, cancelKeyBytes, rest }
  }

  /** By a Unix socket: no TLS there, and none needed. */
  get #isLocal(): boolean {
    return this.#channel.socket.remoteAddress === LOCAL_ADDRESS
  }
}

/** A failed login as the FATAL to send; undefined when nobody is there to hear it. */
export function loginFailure(error: unknown): EngineError | undefined {
  const failure = toEngineError(error)
  return failure.code === 'LOGIN_LEFT' ? undefined : failure
}

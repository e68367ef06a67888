/**
 * A new connection until its first ReadyForQuery: TLS, cancel requests, the startup packet, authentication, and the
 * parameters that the client is told. @see PostgreSQL documentation, "Start-up", "SSL Session Encryption"
 */
import { randomBytes } from 'node:crypto'
import { md5Proves } from '../auth/md5.js'
import { passwordMatches } from '../auth/plain.js'
import { ScramServer } from '../auth/scram-server.js'
import { type Deferred, deferred } from '../base/deferred.js'
import { type EngineError, engineError, toEngineError } from '../errors/engine-error.js'
import type { ByteSocket } from '../net/byte-socket.js'
import { upgradeToTlsServer } from '../net/tls-upgrade.js'
import {
  type Authentication,
  decodePasswordMessage,
  decodeSaslInitialResponse,
  decodeSaslResponse,
  encodeAuthentication,
} from '../wire/auth-messages.js'
import { encodeNegotiateProtocolVersion } from '../wire/backend-messages.js'
import { FrameReader, tagName } from '../wire/frame-reader.js'
import { FrameWriter } from '../wire/frame-writer.js'
import {
  decodeStartupPacket,
  negotiate,
  type StartupMessage,
  StartupReader,
} from '../wire/startup-messages.js'
import { frontend, MAX_STARTUP_BYTES } from '../wire/tags.js'
import { errorFrame } from './answers.js'
import type { LoginRules, SessionEnvironment } from './environment.js'

/** The newest minor version of protocol 3 that is spoken with clients. */
const MINOR = 0
/** Passwords and SASL messages are short: `PG_MAX_AUTH_TOKEN_LENGTH` in `src/include/libpq/auth.h`. */
const MAX_ANSWER_BYTES = 65_535

export interface LoggedIn {
  readonly socket: ByteSocket
  readonly user: string
  readonly database: string
  readonly parameters: ReadonlyMap<string, string>
  /** Bytes that the client sent behind its login. */
  readonly rest: readonly Buffer[]
}

/** Frames or packets that the login waits for, one at a time. */
export class Login {
  #socket: ByteSocket
  readonly #environment: SessionEnvironment
  #chunks: Buffer[] = []
  #arrived: Deferred<void> | undefined
  #ended: EngineError | undefined
  #leave: () => void = () => undefined

  constructor(socket: ByteSocket, environment: SessionEnvironment) {
    this.#socket = socket
    this.#environment = environment
    this.#listen(socket)
  }

  /** Resolves when the user has proved to be who it is; undefined for a cancel request or a client that left. @throws the FATAL to send */
  async run(): Promise<LoggedIn | undefined> {
    const timer = this.#environment.clock.after(this.#environment.loginTimeoutMs, () => {
      this.#stop(engineError('LOGIN_TIMEOUT', { limit: this.#environment.loginTimeoutMs }))
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
    if (error) this.#socket.end(errorFrame(error, 'FATAL'))
    else this.#socket.destroy()
  }

  #listen(socket: ByteSocket): void {
    socket.onClose = () => this.#stop(engineError('LOGIN_LEFT'))
    socket.onChunk = (chunk) => {
      this.#chunks.push(Buffer.from(chunk))
      this.#arrived?.resolve()
    }
  }

  #stop(error: EngineError): void {
    this.#ended ??= error
    this.#arrived?.resolve()
  }

  async #chunk(): Promise<Buffer> {
    while (this.#chunks.length === 0) {
      if (this.#ended) throw this.#ended
      this.#arrived = deferred()
      await this.#arrived.promise
    }
    return this.#chunks.shift() as Buffer
  }

  /** Packets without a tag, until the one that starts a session. */
  async #startup(): Promise<StartupMessage | undefined> {
    for (;;) {
      const packet = decodeStartupPacket(await this.#packet())
      switch (packet.kind) {
        case 'cancel':
          // Who cancels waits for the end of this connection before it goes on.
          await this.#environment.cancelByKey(packet.processId, packet.secret)
          this.#socket.end()
          return undefined
        case 'gssenc':
          this.#socket.write(Buffer.from('N'))
          break
        case 'ssl':
          await this.#encrypt()
          break
        case 'unsupported':
          // a client this old cannot read our error
          if (packet.major < 3) throw engineError('LOGIN_LEFT')
          throw engineError('LOGIN_PROTOCOL', { major: packet.major, minor: packet.minor })
        case 'startup':
          return packet
      }
    }
  }

  async #packet(): Promise<Buffer> {
    const reader = new StartupReader()
    for (;;) {
      const found = reader.push(await this.#chunk())
      if (!found) continue
      if (found.rest.length > 0) this.#chunks.unshift(Buffer.from(found.rest))
      return Buffer.from(found.body)
    }
  }

  async #encrypt(): Promise<void> {
    const { tls } = this.#environment
    if (!tls || this.#socket.encrypted) {
      this.#socket.write(Buffer.from('N'))
      return
    }
    // bytes behind SSLRequest were not protected by TLS: CVE-2021-23222
    if (this.#chunks.length > 0) throw engineError('LOGIN_TLS_STUFFED')
    const raw = this.#socket
    raw.pause()
    raw.onClose = () => undefined
    raw.write(Buffer.from('S'))
    this.#socket = await upgradeToTlsServer(raw, tls)
    this.#listen(this.#socket)
  }

  async #admit(message: StartupMessage): Promise<LoggedIn> {
    const environment = this.#environment
    const { parameters } = message
    const negotiated = negotiate(message, MINOR)
    if (negotiated) {
      const writer = new FrameWriter()
      encodeNegotiateProtocolVersion(writer, negotiated)
      this.#socket.write(writer.take())
    }
    const user = parameters.get('user') ?? ''
    if (user === '') throw engineError('LOGIN_NO_USER')
    const database = parameters.get('database') ?? user
    if (environment.tlsRequired && !this.#socket.encrypted) throw engineError('LOGIN_TLS_REQUIRED')
    this.#leave = environment.admitClient(user, database)
    const rules = environment.loginRules(user, database, this.#socket.remoteAddress)
    await this.#authenticate(user, rules)
    if (!rules.known) throw rules.refusal ?? engineError('LOGIN_REFUSED', { user, database })
    this.#say({ kind: 'ok' })
    return { socket: this.#socket, user, database, parameters, rest: this.#chunks }
  }

  async #authenticate(user: string, rules: LoginRules): Promise<void> {
    switch (rules.method) {
      case 'trust':
        return
      case 'scram-sha-256':
        return this.#scram(user, rules.secrets)
      case 'md5': {
        const salt = randomBytes(4)
        this.#say({ kind: 'md5', salt })
        const answer = decodePasswordMessage(await this.#answer())
        if (!md5Proves(user, rules.secrets, salt, answer))
          throw engineError('AUTH_FAILED', { user })
        return
      }
      case 'plain': {
        this.#say({ kind: 'cleartext' })
        const password = decodePasswordMessage(await this.#answer())
        if (!(await passwordMatches(user, rules.secrets, password))) {
          throw engineError('AUTH_FAILED', { user })
        }
      }
    }
  }

  async #scram(user: string, secrets: readonly string[]): Promise<void> {
    const scram = new ScramServer({ user, secrets })
    this.#say({ kind: 'sasl', mechanisms: ['SCRAM-SHA-256'] })
    const initial = decodeSaslInitialResponse(await this.#answer())
    if (initial.mechanism !== 'SCRAM-SHA-256') {
      throw engineError('AUTH_SCRAM_MALFORMED', { reason: 'client selected an invalid mechanism' })
    }
    const first = scram.first(initial.response ?? Buffer.alloc(0))
    this.#say({ kind: 'saslContinue', bytes: first })
    const final = scram.final(decodeSaslResponse(await this.#answer()))
    this.#say({ kind: 'saslFinal', bytes: final })
  }

  #say(message: Authentication): void {
    const writer = new FrameWriter(64)
    encodeAuthentication(writer, message)
    this.#socket.write(writer.take())
  }

  /** The body of the client's next message, which must be a password message. */
  async #answer(): Promise<Buffer> {
    let body: Buffer | undefined
    const later: Buffer[] = []
    const reader = new FrameReader(
      (tag, buffer, start, end) => {
        if (body) {
          later.push(Buffer.from(buffer.subarray(start, end)))
          return
        }
        if (tag !== frontend.password) {
          throw engineError('WIRE_UNEXPECTED', {
            tag: tagName(tag),
            where: 'during authentication',
          })
        }
        body = Buffer.from(buffer.subarray(start + 5, end))
      },
      Math.max(MAX_ANSWER_BYTES, MAX_STARTUP_BYTES),
    )
    while (!body) reader.push(await this.#chunk())
    this.#chunks.unshift(...later)
    return body
  }
}

/** A failed login as the FATAL to send; undefined when nobody is there to hear it. */
export function loginFailure(error: unknown): EngineError | undefined {
  const failure = toEngineError(error)
  return failure.code === 'LOGIN_LEFT' ? undefined : failure
}

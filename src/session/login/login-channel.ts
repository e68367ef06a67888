/** What a login reads and writes, one packet or frame at a time, before and after the change to TLS. */
import { type Deferred, deferred } from '../../base/deferred.js'
import { type EngineError, engineError } from '../../errors/engine-error.js'
import type { ByteSocket } from '../../net/byte-socket.js'
import { type TlsServer, upgradeToTlsServer } from '../../net/tls-upgrade.js'
import { type Authentication, encodeAuthentication } from '../../wire/auth-messages.js'
import { tagName } from '../../wire/frame-reader.js'
import { FrameWriter } from '../../wire/frame-writer.js'
import { StartupReader } from '../../wire/startup-messages.js'
import { frontend } from '../../wire/tags.js'

/** Passwords and SASL messages are short: `PG_MAX_AUTH_TOKEN_LENGTH` in `src/include/libpq/auth.h`. */
const MAX_ANSWER_BYTES = 65_535
/** Unread bytes of somebody who has not proved to be anybody; then the socket is not read. */
const MAX_PENDING_BYTES = 2 * MAX_ANSWER_BYTES

/** Of the frame at the start, with its tag. @throws WIRE_UNEXPECTED, WIRE_FRAME_LENGTH, WIRE_FRAME_TOO_LONG */
function answerLength(bytes: Buffer): number {
  const tag = bytes[0] as number
  if (tag !== frontend.password) {
    throw engineError('WIRE_UNEXPECTED', { tag: tagName(tag), where: 'during authentication' })
  }
  const length = bytes.readInt32BE(1)
  if (length < 4) throw engineError('WIRE_FRAME_LENGTH', { tag: 'p', length })
  if (length > MAX_ANSWER_BYTES) {
    throw engineError('WIRE_FRAME_TOO_LONG', { tag: 'p', length, limit: MAX_ANSWER_BYTES })
  }
  return length + 1
}

export class LoginChannel {
  #socket: ByteSocket
  #chunks: Buffer[] = []
  #pending = 0
  #isFull = false
  #arrived: Deferred<void> | undefined
  #ended: EngineError | undefined

  constructor(socket: ByteSocket) {
    this.#socket = socket
    this.#listen(socket)
  }

  /** The one in use: it changes with TLS. */
  get socket(): ByteSocket {
    return this.#socket
  }

  /** Ends whatever is awaited with `error`. */
  stop(error: EngineError): void {
    this.#ended ??= error
    this.#arrived?.resolve()
  }

  /** The next bytes, without taking them. */
  async peek(): Promise<Buffer> {
    const chunk = await this.#chunk()
    this.#giveBack(chunk)
    return chunk
  }

  /** A packet of the startup, without its length. @throws WIRE_FRAME_LENGTH, LOGIN_LEFT */
  async packet(): Promise<Buffer> {
    const reader = new StartupReader()
    for (;;) {
      const found = reader.push(await this.#chunk())
      if (!found) continue
      if (found.rest.length > 0) this.#giveBack(Buffer.from(found.rest))
      return Buffer.from(found.body)
    }
  }

  /** Changes to TLS after SSLRequest. @throws LOGIN_TLS_STUFFED, NET_TLS_FAILED */
  async encrypt(tls: TlsServer): Promise<void> {
    // bytes behind SSLRequest were not protected by TLS: CVE-2021-23222
    if (this.#chunks.length > 0) throw engineError('LOGIN_TLS_STUFFED')
    this.write(Buffer.from('S'))
    await this.#upgrade(tls)
  }

  /** Goes on in TLS, which the client began by itself. @throws NET_TLS_FAILED */
  async encryptDirectly(tls: TlsServer): Promise<void> {
    const first = Buffer.concat(this.#chunks.splice(0))
    this.#pending = 0
    await this.#upgrade(tls, first)
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes)
  }

  say(message: Authentication): void {
    const writer = new FrameWriter(64)
    encodeAuthentication(writer, message)
    this.write(writer.take())
  }

  /** The body of the client's next message, which must be a password message. @throws WIRE_*, LOGIN_LEFT */
  async answer(): Promise<Buffer> {
    let bytes = await this.#chunk()
    while (bytes.length < 5 || bytes.length < answerLength(bytes)) {
      bytes = Buffer.concat([bytes, await this.#chunk()])
    }
    const end = answerLength(bytes)
    if (end < bytes.length) this.#giveBack(bytes.subarray(end))
    return bytes.subarray(5, end)
  }

  /** What the client sent behind its login; the socket is nobody's then. */
  takeRest(): Buffer[] {
    const rest = this.#chunks
    this.#chunks = []
    if (this.#isFull) this.#socket.resume()
    return rest
  }

  async #upgrade(tls: TlsServer, first?: Buffer): Promise<void> {
    const raw = this.#socket
    raw.pause()
    raw.onClose = () => undefined
    this.#socket = await upgradeToTlsServer(raw, tls, first)
    this.#isFull = false
    this.#listen(this.#socket)
  }

  #listen(socket: ByteSocket): void {
    socket.onClose = () => this.stop(engineError('LOGIN_LEFT'))
    socket.onChunk = (chunk) => {
      this.#chunks.push(Buffer.from(chunk))
      this.#pending += chunk.length
      this.#isFull = this.#pending > MAX_PENDING_BYTES
      if (this.#isFull) socket.pause()
      this.#arrived?.resolve()
    }
  }

  #giveBack(chunk: Buffer): void {
    this.#chunks.unshift(chunk)
    this.#pending += chunk.length
  }

  async #chunk(): Promise<Buffer> {
    while (this.#chunks.length === 0) {
      if (this.#ended) throw this.#ended
      this.#arrived = deferred()
      await this.#arrived.promise
    }
    const chunk = this.#chunks.shift() as Buffer
    this.#pending -= chunk.length
    if (this.#isFull && this.#pending <= MAX_PENDING_BYTES) {
      this.#isFull = false
      this.#socket.resume()
    }
    return chunk
  }
}

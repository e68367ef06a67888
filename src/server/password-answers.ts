/**
 * Answers a server's requests for a password: clear text, md5, SCRAM-SHA-256 and SCRAM-SHA-256-PLUS.
 * @see "Start-up", "SASL Authentication"
 */
import { endPointBinding } from '../auth/end-point-binding.js'
import { md5Password } from '../auth/md5.js'
import { ScramClient, type ScramSecretKeys } from '../auth/scram-client.js'
import { type ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS } from '../auth/scram-message.js'
import { engineError } from '../errors/engine-error.js'
import type { TlsFacts } from '../net/tls-facts.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { frontend } from '../wire/tags.js'
import type { ServerTarget } from './server-target.js'

/** Codes of the Authentication message. */
const request = { ok: 0, clear: 3, md5: 5, sasl: 10, saslContinue: 11, saslFinal: 12 } as const

export class PasswordAnswers {
  readonly #target: ServerTarget
  readonly #tls: TlsFacts | undefined
  readonly #send: (bytes: Buffer) => void
  #scram: ScramClient | undefined
  #isBound = false
  #wasAsked = false

  /** `tls` of the connection, when it is encrypted. */
  constructor(target: ServerTarget, tls: TlsFacts | undefined, send: (bytes: Buffer) => void) {
    this.#target = target
    this.#tls = tls
    this.#send = send
  }

  /** `body` of an Authentication message; borrowed. @throws SERVER_NO_PASSWORD, SERVER_AUTH_UNKNOWN, AUTH_* */
  async answer(body: Buffer): Promise<void> {
    const code = body.readInt32BE(0)
    this.#wasAsked ||= code !== request.ok
    switch (code) {
      case request.ok:
        return
      case request.clear:
        this.#assertMayGoUnbound()
        return this.#say(Buffer.from(`${this.#password()}\0`))
      case request.md5:
        this.#assertMayGoUnbound()
        return this.#say(
          Buffer.from(`${md5Password(this.#target.user, this.#password(), body.subarray(4, 8))}\0`),
        )
      case request.sasl:
        return this.#startScram(body.toString('latin1', 4).split('\0').filter(Boolean))
      case request.saslContinue:
        return this.#say(await this.#scramState().continue(Buffer.from(body.subarray(4))))
      case request.saslFinal:
        return this.#scramState().finish(Buffer.from(body.subarray(4)))
      default:
        throw engineError('SERVER_AUTH_UNKNOWN', { server: this.#label, method: code })
    }
  }

  /**
   * To be called when the server says that the login is over: a server that did not prove that it knows the password's
   * verifier may be anyone. Synchronous, because all of its messages may come in one read.
   * @throws AUTH_SERVER_UNPROVED, AUTH_BINDING_REQUIRED, AUTH_UNCHECKED
   */
  assertServerProved(): void {
    if (this.#scram && !this.#scram.finished) {
      throw engineError('AUTH_SERVER_UNPROVED', { reason: 'it ended SCRAM authentication early' })
    }
    if (!this.#isBound) this.#assertMayGoUnbound()
    if (this.#target.mustAskPassword && !this.#wasAsked) {
      throw engineError('AUTH_UNCHECKED', { user: this.#target.user })
    }
  }

  #startScram(mechanisms: string[]): void {
    const binding = this.#binding()
    const isBound = binding !== undefined && mechanisms.includes(SCRAM_SHA_256_PLUS)
    if (!isBound) {
      this.#assertMayGoUnbound()
      if (!mechanisms.includes(SCRAM_SHA_256)) {
        const method = mechanisms.join(' ')
        throw engineError('SERVER_AUTH_UNKNOWN', { server: this.#label, method })
      }
    }
    this.#isBound = isBound
    this.#scram = new ScramClient(
      this.#scramSecret(),
      isBound ? { channelBinding: binding } : { couldBind: binding !== undefined },
    )
    this.#send(
      new FrameWriter()
        .begin(frontend.password)
        .cstring(this.#scram.mechanism)
        .value(this.#scram.first())
        .end()
        .take(),
    )
  }

  /** What the exchange could be bound to; undefined where that is not wanted, or not possible. */
  #binding(): ChannelBinding | undefined {
    const certificate = this.#tls?.serverCertificate
    if (this.#target.channelBinding === 'disable' || !certificate) return undefined
    return endPointBinding(certificate)
  }

  /** @throws AUTH_BINDING_REQUIRED */
  #assertMayGoUnbound(): void {
    if (this.#target.channelBinding !== 'require') return
    const reason = this.#tls
      ? 'the server does not offer it, or its certificate allows none'
      : 'the connection is not encrypted'
    throw engineError('AUTH_BINDING_REQUIRED', { reason })
  }

  #scramState(): ScramClient {
    if (this.#scram) return this.#scram
    throw engineError('SERVER_AUTH_UNKNOWN', { server: this.#label, method: 'SASL out of order' })
  }

  #scramSecret(): string | ScramSecretKeys {
    return this.#target.scramKeys ?? this.#password()
  }

  #password(): string {
    if (this.#target.password !== undefined) return this.#target.password
    throw engineError('SERVER_NO_PASSWORD', { server: this.#label, user: this.#target.user })
  }

  #say(body: Uint8Array): void {
    this.#send(new FrameWriter().begin(frontend.password).bytes(body).end().take())
  }

  get #label(): string {
    return `${this.#target.host}:${this.#target.port}`
  }
}

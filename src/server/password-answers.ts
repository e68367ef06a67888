/** Answers a server's requests for a password: clear text, md5 and SCRAM-SHA-256. @see "Start-up", "SASL Authentication" */
import { md5Password } from '../auth/md5.js'
import { ScramClient } from '../auth/scram-client.js'
import { engineError } from '../errors/engine-error.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { frontend } from '../wire/tags.js'
import type { ServerTarget } from './server-target.js'

/** Codes of the Authentication message. */
const request = { ok: 0, clear: 3, md5: 5, sasl: 10, saslContinue: 11, saslFinal: 12 } as const

export class PasswordAnswers {
  readonly #target: ServerTarget
  readonly #send: (bytes: Buffer) => void
  #scram: ScramClient | undefined

  constructor(target: ServerTarget, send: (bytes: Buffer) => void) {
    this.#target = target
    this.#send = send
  }

  /** `body` of an Authentication message; borrowed. @throws SERVER_NO_PASSWORD, SERVER_AUTH_UNKNOWN, AUTH_* */
  async answer(body: Buffer): Promise<void> {
    const code = body.readInt32BE(0)
    switch (code) {
      case request.ok:
        return
      case request.clear:
        return this.#say(Buffer.from(`${this.#password()}\0`))
      case request.md5:
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
   * @throws AUTH_SERVER_UNPROVED
   */
  assertServerProved(): void {
    if (this.#scram && !this.#scram.finished) {
      throw engineError('AUTH_SERVER_UNPROVED', { reason: 'it ended SCRAM authentication early' })
    }
  }

  #startScram(mechanisms: string[]): void {
    if (!mechanisms.includes('SCRAM-SHA-256')) {
      throw engineError('SERVER_AUTH_UNKNOWN', {
        server: this.#label,
        method: mechanisms.join(' '),
      })
    }
    this.#scram = new ScramClient(this.#password())
    const first = this.#scram.first()
    this.#send(
      new FrameWriter().begin(frontend.password).cstring('SCRAM-SHA-256').value(first).end().take(),
    )
  }

  #scramState(): ScramClient {
    if (this.#scram) return this.#scram
    throw engineError('SERVER_AUTH_UNKNOWN', { server: this.#label, method: 'SASL out of order' })
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

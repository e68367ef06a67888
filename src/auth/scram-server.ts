/**
 * SCRAM-SHA-256 as the side that checks. Pure: messages in, messages out.
 * A user who does not exist, or has no password, goes through the same exchange with made-up keys and fails at
 * its end, so that names cannot be probed.
 * @see RFC 5802; `src/backend/libpq/auth-scram.c`
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { engineError } from '../errors/engine-error.js'
import { type ScramSecretKeys, xor } from './scram-client.js'
import {
  AttributeReader,
  type ChannelBinding,
  checkNonce,
  malformed,
  newNonce,
} from './scram-message.js'
import {
  fromBase64,
  hmac,
  parseScramVerifier,
  SCRAM_ITERATIONS,
  SCRAM_SALT_BYTES,
  type ScramVerifier,
  scramKeys,
  scramKeysSync,
  sha256,
} from './scram-verifier.js'

export interface ScramServerOptions {
  readonly user: string
  /** Passwords in clear or SCRAM verifiers, any of which is accepted; none: the exchange is a mock. Of verifiers only those that share the first one's salt can be tried. */
  readonly secrets: readonly string[]
  /** The mechanism chosen was -PLUS, and this is the binding of our end. */
  readonly channelBinding?: ChannelBinding
  /** We offered -PLUS: a client that says it could bind but saw no offer was tampered with. */
  readonly offeredBinding?: boolean
  /** Makes salts that stay the same for one user; the same in all workers of one proxy. */
  readonly saltSecret?: Buffer
  readonly nonce?: () => string
}

/** One for the life of the process. */
const processSecret = randomBytes(32)

export class ScramServer {
  readonly #options: ScramServerOptions
  readonly #verifiers: readonly ScramVerifier[]
  readonly #isMock: boolean
  #gs2Header = ''
  #clientFirstBare = ''
  #serverFirst = ''
  #nonce = ''
  #proved: ScramSecretKeys | undefined

  constructor(options: ScramServerOptions) {
    this.#options = options
    const accepted = verifiersOf(options)
    this.#isMock = accepted.length === 0
    this.#verifiers = this.#isMock ? [mockVerifier(options)] : accepted
  }

  /** After a successful `final`: what the client has shown, with which one may log in elsewhere by the same verifier. */
  get proved(): ScramSecretKeys | undefined {
    return this.#proved
  }

  /** Takes client-first-message, gives server-first-message. @throws AUTH_SCRAM_MALFORMED, AUTH_SCRAM_UNSUPPORTED */
  first(clientFirst: Buffer): Buffer {
    const text = clientFirst.toString('utf8')
    const reader = new AttributeReader(text)
    const flag = reader.raw()
    const authorizationId = reader.raw()
    this.#checkBindingFlag(flag)
    if (authorizationId !== '') {
      throw engineError('AUTH_SCRAM_UNSUPPORTED', { what: 'an authorization identity' })
    }
    if (reader.peek() === 'm') {
      throw engineError('AUTH_SCRAM_UNSUPPORTED', { what: 'a mandatory extension' })
    }
    this.#gs2Header = `${flag},,`
    this.#clientFirstBare = text.slice(this.#gs2Header.length)
    // The name is that of the startup packet; this one is ignored, as PostgreSQL does.
    reader.take('n')
    this.#nonce = checkNonce(reader.take('r')) + (this.#options.nonce ?? newNonce)()
    reader.skipExtensions()
    const { salt, iterations } = this.#verifiers[0] as ScramVerifier
    this.#serverFirst = `r=${this.#nonce},s=${salt.toString('base64')},i=${iterations}`
    return Buffer.from(this.#serverFirst)
  }

  /** Takes client-final-message, gives server-final-message. @throws AUTH_FAILED, AUTH_SCRAM_MALFORMED */
  final(clientFinal: Buffer): Buffer {
    if (this.#serverFirst === '') return malformed('message out of order')
    const text = clientFinal.toString('utf8')
    const proofAt = text.lastIndexOf(',p=')
    const reader = new AttributeReader(text)
    const binding = reader.take('c')
    const nonce = reader.take('r')
    while (reader.peek() !== 'p' && reader.peek() !== undefined) reader.raw()
    const proof = fromBase64(reader.take('p'))
    reader.end()
    const bound = Buffer.concat([
      Buffer.from(this.#gs2Header),
      this.#options.channelBinding?.bytes ?? Buffer.alloc(0),
    ])
    if (binding !== bound.toString('base64')) malformed('channel binding does not match')
    if (nonce !== this.#nonce) malformed('nonce does not match')
    if (proof?.length !== 32) return malformed('bad proof')
    const authMessage = `${this.#clientFirstBare},${this.#serverFirst},${text.slice(0, proofAt)}`
    const matching = this.#verifiers.filter((one) => proves(one, authMessage, proof))
    const verifier = matching[0]
    if (this.#isMock || !verifier) throw engineError('AUTH_FAILED', { user: this.#options.user })
    const { salt, iterations, serverKey, storedKey } = verifier
    const clientKey = xor(proof, hmac(storedKey, authMessage))
    this.#proved = { clientKey, serverKey, salt, iterations }
    return Buffer.from(`v=${hmac(verifier.serverKey, authMessage).toString('base64')}`)
  }

  #checkBindingFlag(flag: string): void {
    const binding = this.#options.channelBinding
    if (flag === 'n' || flag === 'y') {
      if (binding) malformed('SCRAM-SHA-256-PLUS without channel binding')
      if (flag === 'y' && this.#options.offeredBinding) {
        throw engineError('AUTH_BINDING_DOWNGRADE')
      }
      return
    }
    if (!flag.startsWith('p=')) malformed('bad channel binding flag')
    if (!binding) malformed('SCRAM-SHA-256 with channel binding')
    if (flag !== `p=${binding?.type}`) {
      throw engineError('AUTH_SCRAM_UNSUPPORTED', { what: 'this type of channel binding' })
    }
  }
}

function proves(verifier: ScramVerifier, authMessage: string, proof: Buffer): boolean {
  const clientKey = xor(proof, hmac(verifier.storedKey, authMessage))
  return timingSafeEqual(sha256(clientKey), verifier.storedKey)
}

/** All secrets as verifiers of one salt, because the salt is sent before the password is known. */
function verifiersOf(options: ScramServerOptions): ScramVerifier[] {
  const parsed = options.secrets.map((secret) => ({ secret, verifier: parseScramVerifier(secret) }))
  const stored = parsed.find((one) => one.verifier)?.verifier
  const salt = stored?.salt ?? saltOf(options)
  const iterations = stored?.iterations ?? SCRAM_ITERATIONS
  return parsed.flatMap(({ secret, verifier }) => {
    if (!verifier) return [{ salt, iterations, ...scramKeysSync(secret, salt, iterations) }]
    return verifier.salt.equals(salt) && verifier.iterations === iterations ? [verifier] : []
  })
}

/**
 * Derives the keys of a user's passwords before anybody asks: the first login would else take longer than that of a
 * stranger, which tells names apart.
 */
export async function prepareScramKeys(
  options: Pick<ScramServerOptions, 'user' | 'secrets' | 'saltSecret'>,
): Promise<void> {
  const verifiers = options.secrets.map(parseScramVerifier)
  const stored = verifiers.find((one) => one !== undefined)
  const salt = stored?.salt ?? saltOf(options)
  const iterations = stored?.iterations ?? SCRAM_ITERATIONS
  for (const [n, secret] of options.secrets.entries()) {
    if (!verifiers[n]) await scramKeys(secret, salt, iterations)
  }
}

const saltOf = (options: Pick<ScramServerOptions, 'user' | 'saltSecret'>): Buffer =>
  hmac(options.saltSecret ?? processSecret, `salt ${options.user}`).subarray(0, SCRAM_SALT_BYTES)

function mockVerifier(options: ScramServerOptions): ScramVerifier {
  return {
    iterations: SCRAM_ITERATIONS,
    salt: saltOf(options),
    storedKey: randomBytes(32),
    serverKey: randomBytes(32),
  }
}

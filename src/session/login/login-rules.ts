/** What the house around a login says of one client: which proof is asked of it, and what to hold the proof against. */
import type { ScramSecretKeys } from '../../auth/scram-client.js'
import type { EngineError } from '../../errors/engine-error.js'
import type { PeerCertificate } from '../../net/tls-facts.js'

/** Who asks to be let in, and how it has come. */
export interface LoginRequest {
  readonly user: string
  readonly database: string
  /** Undefined: by a Unix socket. */
  readonly address: string | undefined
  readonly encrypted: boolean
  /** Its certificate, which has verified. */
  readonly peer: PeerCertificate | undefined
}

/** What a client has proved itself with; it opens servers for who is not configured. */
export interface LoginProof {
  readonly password?: string
  readonly scramKeys?: ScramSecretKeys
}

/** How a user may log in. Secrets stay inside the functions of auth/. */
export interface LoginRules {
  /** What the proxy asks of this user on this connection. */
  readonly method: 'trust' | 'scram-sha-256' | 'md5' | 'plain'
  /** Every password that is accepted, in clear, as md5 hash or SCRAM verifier; empty for an unknown user (the exchange is then a mock). */
  readonly secrets: readonly string[]
  /** True: user and database exist and may be combined. */
  readonly known: boolean
  /** What one hears who is not known, after its password; absent: that no entry lets it in. */
  readonly refusal?: EngineError
  /** Somebody else says whether a password in clear is right, instead of the secrets. @throws the FATAL to answer with */
  verify?(password: string): Promise<void>
  /** Told of the proof when it is right, before the client hears so. */
  proved?(proof: LoginProof): void | Promise<void>
  /** Told that the proof was wrong. */
  readonly failed?: (() => void) | undefined
}

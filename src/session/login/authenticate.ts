/** Asks a client for the proof that its rules want, and holds it against them. @see PostgreSQL documentation, "SASL Authentication" */
import { randomBytes } from 'node:crypto'
import { endPointBinding } from '../../auth/end-point-binding.js'
import { md5Proves } from '../../auth/md5.js'
import { passwordMatches } from '../../auth/plain.js'
import { SCRAM_SHA_256, SCRAM_SHA_256_PLUS } from '../../auth/scram-message.js'
import { ScramServer } from '../../auth/scram-server.js'
import { engineError } from '../../errors/engine-error.js'
import {
  decodePasswordMessage,
  decodeSaslInitialResponse,
  decodeSaslResponse,
} from '../../wire/auth-messages.js'
import type { LoginChannel } from './login-channel.js'
import type { LoginProof, LoginRules } from './login-rules.js'

/** Resolves when the client has proved to be `user`. @throws AUTH_*, WIRE_*, LOGIN_LEFT, what `rules.verify` throws */
export async function authenticate(
  channel: LoginChannel,
  user: string,
  rules: LoginRules,
  saltSecret: Buffer | undefined,
): Promise<void> {
  try {
    // Apart from the call below: an optional call does not evaluate its arguments where there is nothing to call.
    const proof = await proofOf(channel, user, rules, saltSecret)
    await rules.proved?.(proof)
  } catch (error) {
    rules.failed?.()
    throw error
  }
}

async function proofOf(
  channel: LoginChannel,
  user: string,
  rules: LoginRules,
  saltSecret: Buffer | undefined,
): Promise<LoginProof> {
  switch (rules.method) {
    case 'trust':
      return {}
    case 'scram-sha-256':
      return await byScram(channel, user, rules.secrets, saltSecret)
    case 'md5': {
      const salt = randomBytes(4)
      channel.say({ kind: 'md5', salt })
      const answer = decodePasswordMessage(await channel.answer())
      if (!md5Proves(user, rules.secrets, salt, answer)) throw engineError('AUTH_FAILED', { user })
      return {}
    }
    case 'plain': {
      channel.say({ kind: 'cleartext' })
      const password = decodePasswordMessage(await channel.answer())
      if (rules.verify) await rules.verify(password)
      else if (!(await passwordMatches(user, rules.secrets, password))) {
        throw engineError('AUTH_FAILED', { user })
      }
      return { password }
    }
  }
}

async function byScram(
  channel: LoginChannel,
  user: string,
  secrets: readonly string[],
  saltSecret: Buffer | undefined,
): Promise<LoginProof> {
  const certificate = channel.socket.tls?.serverCertificate
  const binding = certificate && endPointBinding(certificate)
  const mechanisms = binding ? [SCRAM_SHA_256_PLUS, SCRAM_SHA_256] : [SCRAM_SHA_256]
  channel.say({ kind: 'sasl', mechanisms })
  const initial = decodeSaslInitialResponse(await channel.answer())
  if (!mechanisms.includes(initial.mechanism)) {
    throw engineError('AUTH_SCRAM_MALFORMED', { reason: 'client selected an invalid mechanism' })
  }
  const isBound = initial.mechanism === SCRAM_SHA_256_PLUS
  const scram = new ScramServer({
    user,
    secrets,
    offeredBinding: binding !== undefined,
    ...(binding && isBound ? { channelBinding: binding } : {}),
    ...(saltSecret ? { saltSecret } : {}),
  })
  channel.say({ kind: 'saslContinue', bytes: scram.first(initial.response ?? Buffer.alloc(0)) })
  const final = scram.final(decodeSaslResponse(await channel.answer()))
  channel.say({ kind: 'saslFinal', bytes: final })
  return scram.proved ? { scramKeys: scram.proved } : {}
}

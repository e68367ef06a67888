/** `channel_binding=require` for pg, which binds where it can but would go on without: nothing is sent to a server that does not bind. */
import type pg from 'pg'
import { engineError } from '../errors/engine-error.js'

interface WithConnection {
  connection: {
    stream: { destroy(): void }
    prependListener(event: string, listener: (message?: { mechanisms?: string[] }) => void): void
  }
}

/** Ends the connection at the first step of a login that is not bound. `refused` then says why. */
export function requireBinding(client: pg.Client): { readonly refused: () => Error | undefined } {
  const { connection } = client as unknown as WithConnection
  let isBound = false
  let refusal: Error | undefined
  const refuse = (reason: string) => {
    refusal ??= engineError('AUTH_BINDING_REQUIRED', { reason })
    connection.stream.destroy()
  }
  connection.prependListener('authenticationSASL', (message) => {
    isBound = message?.mechanisms?.includes('SCRAM-SHA-256-PLUS') ?? false
    if (!isBound) refuse('the server does not offer it, or the connection is not encrypted')
  })
  for (const event of ['authenticationCleartextPassword', 'authenticationMD5Password']) {
    connection.prependListener(event, () => refuse('the server asks for a password without it'))
  }
  connection.prependListener('authenticationOk', () => {
    if (!isBound) refuse('the server let us in without it')
  })
  return { refused: () => refusal }
}

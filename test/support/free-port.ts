import { findFreePorts } from '../../src/net/free-port.js'

/** Neither where servers of tests are started nor where outgoing connections get theirs. */
const RANGE = { first: 32_000, last: 32_767 }

/** A port of 127.0.0.1 that nothing listens on. */
export async function freePort(): Promise<number> {
  const [port] = await findFreePorts(1, RANGE)
  if (port === undefined) throw new Error('no free port')
  return port
}

import { findFreePorts } from '../../src/net/free-port.js'

/** A port of 127.0.0.1 that nothing listens on. */
export async function freePort(): Promise<number> {
  const [port] = await findFreePorts(1)
  if (port === undefined) throw new Error('no free port')
  return port
}

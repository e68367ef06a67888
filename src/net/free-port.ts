/** Ports of this machine that nothing listens on. A port found free may be taken a moment later: who binds it must be ready to try another. */
import { createServer } from 'node:net'

/** Below the range from which systems take the ports of outgoing connections. */
const FIRST = 20_000
const LAST = 31_999

/** Whether `port` can be listened on. */
export function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

export interface PortRange {
  first: number
  last: number
}

/** `count` free ports in a row of tries that begins at a place of our process's own. */
export async function findFreePorts(
  count: number,
  { first, last }: PortRange = { first: FIRST, last: LAST },
  host = '127.0.0.1',
): Promise<number[]> {
  const found: number[] = []
  const span = last - first + 1
  const start = (process.pid * 37 + nextOffset) % span
  for (let step = 0; found.length < count && step < span; step++) {
    const port = first + ((start + step) % span)
    nextOffset = (nextOffset + 1) % span
    if (await isPortFree(port, host)) found.push(port)
  }
  return found
}

/** So that two searches of one process do not find the same ports. */
let nextOffset = 0

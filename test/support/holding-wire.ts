/** A TCP proxy before a PostgreSQL that can hold back everything for a while, as a server that stalls, and lose nothing. */
import net from 'node:net'

export interface HoldingWire {
  readonly port: number
  /** Bytes that came from the server so far. */
  readonly received: number
  /** From now on nothing passes, in either direction. */
  hold(): void
  /** Connections that come from now on are held; those that are open go on. */
  holdNew(): void
  /** How many connections came since, while held. */
  readonly heldBack: number
  release(): void
  close(): Promise<void>
}

export async function startHoldingWire(host: string, port: number): Promise<HoldingWire> {
  const open = new Set<net.Socket>()
  let received = 0
  let isHeld = false
  let heldBack = 0
  const server = net.createServer((client) => {
    const upstream = net.connect(port, host)
    if (isHeld) heldBack++
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from)
      from.on('error', () => undefined)
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
      from.on('data', (chunk: Buffer) => {
        if (from === upstream) received += chunk.length
        to.write(chunk)
      })
      if (isHeld) from.pause()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as net.AddressInfo).port,
    get received() {
      return received
    },
    get heldBack() {
      return heldBack
    },
    holdNew: () => {
      isHeld = true
    },
    hold: () => {
      isHeld = true
      for (const socket of open) socket.pause()
    },
    release: () => {
      isHeld = false
      for (const socket of open) socket.resume()
    },
    close: async () => {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

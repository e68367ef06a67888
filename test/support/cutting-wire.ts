/** A TCP proxy before a PostgreSQL that reads the frames of both directions and cuts the connection at a wanted kind of message. */
import net from 'node:net'

/** `server` or `client`, who sent it, and its tag; of CopyData the tag of what is inside: `server d`, `server d/w`. */
export type MessageKind = string

export interface CuttingWire {
  readonly port: number
  /** Kinds seen while armed. */
  readonly seen: ReadonlySet<MessageKind>
  /** Kinds at which a connection was cut. */
  readonly cut: ReadonlySet<MessageKind>
  /** From now on the first message of each kind that is not in `cut` ends its connection. One cut a call. */
  arm(): void
  close(): Promise<void>
}

/** Walks frames of one direction; the first frame of a client has no tag. */
class FrameWalk {
  #rest = Buffer.alloc(0)
  #isStartup: boolean
  readonly #side: 'server' | 'client'

  constructor(side: 'server' | 'client') {
    this.#side = side
    this.#isStartup = side === 'client'
  }

  kinds(chunk: Buffer): MessageKind[] {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const found: MessageKind[] = []
    for (;;) {
      const head = this.#isStartup ? 0 : 1
      if (this.#rest.length < head + 4) return found
      const end = head + this.#rest.readInt32BE(head)
      if (this.#rest.length < end) return found
      if (!this.#isStartup) {
        const tag = String.fromCharCode(this.#rest[0] as number)
        found.push(`${this.#side} ${tag}`)
        // XLogData and keepalives of a replication stream are told apart.
        const inner = String.fromCharCode(this.#rest[5] ?? 0)
        if (tag === 'd' && end > 6 && 'wkr'.includes(inner)) found.push(`${this.#side} d/${inner}`)
      }
      this.#isStartup = false
      this.#rest = this.#rest.subarray(end)
    }
  }
}

export async function startCuttingWire(host: string, port: number): Promise<CuttingWire> {
  const seen = new Set<MessageKind>()
  const cut = new Set<MessageKind>()
  const open = new Set<net.Socket>()
  let isArmed = false
  const server = net.createServer((client) => {
    const upstream = net.connect(port, host)
    const both = [client, upstream]
    for (const socket of both) {
      open.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        open.delete(socket)
        for (const other of both) other.destroy()
      })
    }
    /** True when the connection was cut here. */
    const isCutAt = (kind: MessageKind): boolean => {
      if (!isArmed) return false
      seen.add(kind)
      if (cut.has(kind)) return false
      cut.add(kind)
      isArmed = false
      for (const socket of both) socket.destroy()
      return true
    }
    const pass = (from: net.Socket, to: net.Socket, walk: FrameWalk): void => {
      from.on('data', (chunk: Buffer) => {
        if (walk.kinds(chunk).some(isCutAt) || to.write(chunk)) return
        from.pause()
        to.once('drain', () => from.resume())
      })
    }
    pass(client, upstream, new FrameWalk('client'))
    pass(upstream, client, new FrameWalk('server'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as net.AddressInfo).port,
    seen,
    cut,
    arm: () => {
      isArmed = true
    },
    close: async () => {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

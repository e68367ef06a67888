/**
 * A TCP proxy that breaks connections on purpose: delay, cut at a byte or at a message, half-open
 * (nothing passes any more, nobody is told), reset. Needs no privileges. Knows just enough of the
 * protocol to count messages: a tag and a length, but for the first packets of a client.
 */

import { connect, createServer, type Server, type Socket } from 'node:net'
import {
  type Direction,
  type Fault,
  MessageCounter,
  type Rule,
  StrikeFinder,
} from './strike-finder.js'

export interface Spoiler {
  readonly host: string
  readonly port: number
  /** How many connections came in so far. */
  readonly accepted: number
  readonly open: number
  /** For connections made from now on; replaces what was set before. */
  setRules(...rules: Rule[]): void
  /** Each chunk waits so long in both directions, also of open connections. */
  setDelayMs(delayMs: number): void
  /** At once, on every open connection. */
  strike(fault: Fault): void
  /** New connections are refused, or taken again. */
  refuse(on: boolean): Promise<void>
  close(): Promise<void>
}

interface Link {
  client: Socket
  server: Socket
  hanging: boolean
}

const strikeLink = (link: Link, fault: Fault): void => {
  if (fault === 'hang') {
    link.hanging = true
    return
  }
  for (const socket of [link.client, link.server])
    if (fault === 'reset') reset(socket)
    else socket.destroySoon()
}

/** A reset and nothing before it: `resetAndDestroy` ends the stream first, and who reads that FIN sees an orderly end. */
function reset(socket: Socket): void {
  const resetting = socket as Socket & { resetAndClosing?: boolean }
  resetting.resetAndClosing = true
  resetting.destroy()
}

/** Starts the proxy on a free port in front of `target`. */
export async function startSpoiler(target: { host?: string; port: number }): Promise<Spoiler> {
  let rules: Rule[] = []
  let delayMs = 0
  let accepted = 0
  let sinceRules = 0
  const links = new Set<Link>()

  const pump = (
    link: Link,
    direction: Direction,
    index: number,
    counters: Record<Direction, MessageCounter>,
  ) => {
    const [from, to] =
      direction === 'to-server' ? [link.client, link.server] : [link.server, link.client]
    const mine = rules.filter(
      (rule) => rule.direction === direction && (rule.connection ?? index) === index,
    )
    const finder = new StrikeFinder(mine, counters[direction], () => {
      counters['to-client'].expectedAnswers++
    })
    let struck = false
    let due = 0
    /** In order, also when the delay was made shorter in between. */
    const later = (run: () => void) => {
      const now = performance.now()
      due = Math.max(due, now + delayMs)
      if (due <= now) run()
      else setTimeout(run, due - now)
    }
    const forward = (bytes: Buffer, then?: () => void) =>
      later(() => {
        if (to.destroyed) return
        // a reset straight after a write becomes a plain end: wait until the bytes are out
        if (then) to.write(bytes, () => setTimeout(then, 1))
        else to.write(bytes)
      })
    from.on('data', (chunk: Buffer) => {
      if (link.hanging || struck) return // nothing behind a strike passes
      const strike = finder.feed(chunk)
      if (!strike) return forward(chunk)
      forward(chunk.subarray(0, strike.passing), () => strikeLink(link, strike.rule.fault))
      struck = true
    })
    from.on('end', () => !link.hanging && later(() => to.end()))
    from.on('error', () => !link.hanging && to.destroy())
    from.on('close', () => {
      links.delete(link)
      if (!link.hanging) to.destroySoon()
    })
  }

  const onClient = (client: Socket) => {
    accepted++
    const index = sinceRules++
    const server = connect({ host: target.host ?? '127.0.0.1', port: target.port, noDelay: true })
    client.setNoDelay(true)
    const link: Link = { client, server, hanging: false }
    links.add(link)
    const counters = {
      'to-server': new MessageCounter('to-server'),
      'to-client': new MessageCounter('to-client'),
    }
    pump(link, 'to-server', index, counters)
    pump(link, 'to-client', index, counters)
  }

  const listen = (port: number) =>
    new Promise<Server>((resolve, reject) => {
      const made = createServer({ allowHalfOpen: true }, onClient)
      made.once('error', reject)
      made.listen(port, '127.0.0.1', () => resolve(made))
    })
  let server: Server | undefined = await listen(0)
  const { port } = server.address() as { port: number }
  const stopListening = () => {
    const closing = server
    server = undefined
    closing?.close() // open connections go on
  }

  return {
    host: '127.0.0.1',
    port,
    get accepted() {
      return accepted
    },
    get open() {
      return links.size
    },
    setRules: (...next) => {
      rules = next
      sinceRules = 0
    },
    setDelayMs: (next) => {
      delayMs = next
    },
    strike: (fault) => {
      for (const link of [...links]) strikeLink(link, fault)
    },
    refuse: async (on) => {
      if (on) stopListening()
      else server ??= await listen(port)
    },
    close: async () => {
      stopListening()
      for (const { client, server: upstream } of [...links]) {
        client.destroy()
        upstream.destroy()
      }
    },
  }
}

/** Other clients of the same pool, who set and leave all kinds of things between the requests of the one that is watched. */
import { Chooser } from '../support/arbitraries/chooser.js'
import { neighbourRequests } from '../support/arbitraries/session-statements.js'
import { encodeStep } from '../support/arbitraries/session-steps.js'
import { SessionClient, type SessionTarget } from './session-client.js'

/** How long the watched client waits for a neighbour that may itself be waiting for a server. */
const PATIENCE_MS = 25

export class Neighbours {
  readonly #clients: readonly SessionClient[]
  readonly #busy = new Set<SessionClient>()

  private constructor(clients: readonly SessionClient[]) {
    this.#clients = clients
  }

  static async open(target: SessionTarget, count: number): Promise<Neighbours> {
    const clients: SessionClient[] = []
    for (let i = 0; i < count; i++) {
      const { client } = await SessionClient.open(target, { application_name: 'neighbour' })
      clients.push(client)
    }
    return new Neighbours(clients)
  }

  /** What happens between two steps, decided by a seed. */
  with(seed: number): (step: { isFree: boolean }) => Promise<void> {
    const choose = new Chooser(seed ^ 0x5bd1e995)
    return async () => {
      const client = choose.pick(this.#clients)
      const requests = neighbourRequests(choose)
      if (this.#busy.has(client)) return
      this.#busy.add(client)
      client.send(encodeStep(requests.map((sql) => ({ kind: 'query', sql }))))
      const done = client.until(requests.length, 60_000).then(() => this.#busy.delete(client))
      await Promise.race([done, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))])
    }
  }

  end(): void {
    for (const client of this.#clients) client.end()
  }
}

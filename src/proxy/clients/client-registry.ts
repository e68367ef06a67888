/** Who is connected: identities, cancel keys that cannot be guessed, figures of those who are there and who have gone. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../base/clock.js'
import { addFigures, newFigures } from '../../session/client-figures.js'
import type { ClientFigures, ClientHandle, ClientIdentity } from '../../session/environment.js'
import { ProcessIds } from '../fleet.js'

interface Registered {
  readonly id: number
  readonly processId: number
  readonly key: Buffer
  readonly client: ClientHandle
  readonly isConsole: boolean
}

export interface Usage extends ClientFigures {
  readonly user: string
  readonly database: string
}

export class ClientRegistry {
  readonly #byProcess = new Map<number, Registered>()
  readonly #gone = new Map<string, Usage>()
  readonly #processIds: ProcessIds
  /** Clients of each user, without those of the console. */
  readonly #byUser = new Map<string, number>()
  #nextId = 1
  #consoles = 0
  #loggingIn = 0
  #whenEmpty: (() => void)[] = []

  constructor(processIds = new ProcessIds()) {
    this.#processIds = processIds
  }

  /** Clients, without those of the console. */
  get size(): number {
    return this.#byProcess.size - this.#consoles
  }

  *all(): Iterable<{ id: number; client: ClientHandle; isConsole: boolean }> {
    yield* this.#byProcess.values()
  }

  byId(id: number): ClientHandle | undefined {
    for (const one of this.#byProcess.values()) if (one.id === id) return one.client
    return undefined
  }

  /**
   * Takes a place for a client that logs in, so that many at once do not pass a limit that none of them passes alone; false
   * when `limit` clients are there or on their way. Give it back with `loggedIn`.
   */
  admit(limit: number): boolean {
    if (this.size + this.#loggingIn >= limit) return false
    this.#loggingIn++
    return true
  }

  /** The login of one that was admitted has ended: it is registered, or it has gone. */
  loggedIn(): void {
    this.#loggingIn--
  }

  /** Clients of a user, without those of the console. */
  countOf(user: string): number {
    return this.#byUser.get(user) ?? 0
  }

  /** A key of 4 bytes (all that protocol 3.0 has room for) leaves 63 bits to guess, with the random process id. */
  register(client: ClientHandle, isConsole: boolean, cancelKeyBytes = 4): ClientIdentity {
    let processId = this.#processIds.make()
    while (this.#byProcess.has(processId)) processId = this.#processIds.make()
    const key = randomBytes(cancelKeyBytes)
    const registered = { id: this.#nextId++, processId, key, client, isConsole }
    this.#byProcess.set(processId, registered)
    if (isConsole) this.#consoles++
    else this.#byUser.set(client.user, this.countOf(client.user) + 1)
    return {
      id: registered.id,
      processId,
      cancelKey: key,
      leave: () => this.#leave(registered),
    }
  }

  /** Whose key this is; undefined for any other. */
  byKey(processId: number, key: Buffer): ClientHandle | undefined {
    const known = this.#byProcess.get(processId)
    if (!known) return undefined
    if (key.length !== known.key.length) return undefined
    return timingSafeEqual(known.key, key) ? known.client : undefined
  }

  /** Resolves when no client is left; consoles do not count. */
  whenEmpty(): Promise<void> {
    if (this.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenEmpty.push(resolve))
  }

  /** True when no client is left in time; false at once when `now` aborts. */
  async emptyWithin(limitMs: number, clock: Clock, now: AbortSignal): Promise<boolean> {
    const waiting = new AbortController()
    now.addEventListener('abort', () => waiting.abort())
    if (now.aborted) waiting.abort()
    const isEmpty = await Promise.race([
      this.whenEmpty().then(() => true),
      clock.sleep(limitMs, waiting.signal).then(() => false),
    ])
    waiting.abort()
    return isEmpty
  }

  /** What the clients of each user on each database did, gone ones too. */
  usage(): Usage[] {
    const sums = new Map([...this.#gone].map(([key, usage]) => [key, { ...usage }]))
    for (const { client, isConsole } of this.#byProcess.values()) {
      if (!isConsole) addTo(sums, client)
    }
    return [...sums.values()]
  }

  #leave(registered: Registered): void {
    if (!this.#byProcess.delete(registered.processId)) return
    if (registered.isConsole) this.#consoles--
    else {
      addTo(this.#gone, registered.client)
      const left = this.countOf(registered.client.user) - 1
      if (left > 0) this.#byUser.set(registered.client.user, left)
      else this.#byUser.delete(registered.client.user)
    }
    if (this.size === 0) for (const tell of this.#whenEmpty.splice(0)) tell()
  }
}

function addTo(sums: Map<string, Usage>, client: ClientHandle): void {
  const key = JSON.stringify([client.user, client.database])
  const sum = sums.get(key) ?? {
    user: client.user,
    database: client.database,
    ...newFigures(),
  }
  addFigures(sum, client.figures)
  sums.set(key, sum)
}

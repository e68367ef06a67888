/** What a proxy knows when it is one of several workers: its place, and what it asks of the others through their primary. */
import { createHmac, randomInt } from 'node:crypto'
import type { ProxyControl } from '../admin/proxy-control.js'
import type { ProxyView } from '../admin/proxy-view.js'
import type { ByteSocket } from '../net/byte-socket.js'
import type { Listener } from '../net/listener.js'

/** Where a process stands among those of one `serve`. */
export interface WorkerPlace {
  readonly number: number
  readonly count: number
}

export const alone: WorkerPlace = { number: 0, count: 1 }

export interface Fleet extends WorkerPlace {
  /** The same in all workers: hides in each process id which worker gave it. */
  readonly keySecret: Buffer
  /** Makes salts of users without a password; the same in all workers, so that names cannot be probed. */
  readonly saltSecret: Buffer
  /** Instead of listening: connections come from the primary. */
  openListeners(accept: (socket: ByteSocket) => void): Promise<Listener[]>
  /** Cancels a request in another worker; resolves when that is done, or nobody has such a client. */
  cancel(worker: number, processId: number, key: Buffer): Promise<void>
  /** All workers together. */
  look(): Promise<ProxyView>
  /** Commands to all workers. */
  readonly control: ProxyControl
  /** Tells the other workers that a statement changed the schema. */
  schemaChanged(database: string): void
}

/** An id of one worker as the console shows it: unique over all of them. */
export const sharedId = ({ number, count }: WorkerPlace, id: number): number => id * count + number

/** The id within its worker; undefined when another worker gave it. */
export const ownId = ({ number, count }: WorkerPlace, shared: number): number | undefined =>
  shared % count === number ? Math.floor(shared / count) : undefined

const WORKER_BITS = 10
const SERIAL_BITS = 31 - WORKER_BITS

/** Workers at most: what a process id has room for. */
export const MAX_WORKERS = 2 ** WORKER_BITS

/** Process ids for cancel keys: random, and only who has the secret sees in them which worker gave them. */
export class ProcessIds {
  readonly #place: WorkerPlace
  readonly #secret: Buffer | undefined

  constructor(place: WorkerPlace = alone, secret?: Buffer) {
    this.#place = place
    this.#secret = secret
  }

  make(): number {
    if (this.#secret === undefined) return randomInt(1, 0x7fff_ffff)
    const serial = randomInt(1, 2 ** SERIAL_BITS)
    return ((this.#place.number ^ this.#pad(serial)) << SERIAL_BITS) | serial
  }

  /** Number of the worker that gave the id; undefined when none of this fleet can have. */
  ownerOf(processId: number): number | undefined {
    if (this.#secret === undefined) return this.#place.number
    if (processId < 0) return undefined
    const serial = processId & (2 ** SERIAL_BITS - 1)
    const owner = (processId >>> SERIAL_BITS) ^ this.#pad(serial)
    return owner < this.#place.count ? owner : undefined
  }

  #pad(serial: number): number {
    const digest = createHmac('sha256', this.#secret as Buffer)
      .update(String(serial))
      .digest()
    return digest.readUInt16BE(0) & (MAX_WORKERS - 1)
  }
}

/** The COPY FROM STDIN that a client is at, if any: hands it the client's frames, those first that came before it was asked for. */
import { toEngineError } from '../../errors/engine-error.js'
import type { ByteSocket } from '../../net/byte-socket.js'
import type { FrameQueue } from '../frame-queue.js'
import type { SessionCore } from '../session-core.js'
import type { HeldServer } from '../state/held-servers.js'
import type { CopyIn } from './copy-in.js'
import { CopyToServer } from './copy-to-server.js'
import { CopyToShards } from './copy-to-shards.js'

export class ClientCopy {
  readonly #core: SessionCore
  readonly #socket: ByteSocket
  readonly #queue: FrameQueue
  #copy: CopyIn | undefined
  #isStopped = false

  constructor(core: SessionCore, socket: ByteSocket, queue: FrameQueue) {
    this.#core = core
    this.#socket = socket
    this.#queue = queue
  }

  get isThere(): boolean {
    return this.#copy !== undefined
  }

  /** Takes the frame when it is for the COPY; borrowed. */
  takes(tag: number, buffer: Buffer, start: number, end: number): boolean {
    if (!this.#copy || this.#copy.isOver || this.#queue.size > 0) return false
    this.#copy.frame(tag, buffer, start, end)
    return true
  }

  /** A server asks for data. */
  toServer(held: HeldServer, protocol: 'simple' | 'extended', dataEnded: () => void): void {
    this.#copy = new CopyToServer(held, this.#socket, protocol, dataEnded)
  }

  toShards(copied: Parameters<typeof CopyToShards.start>[2]): void {
    CopyToShards.start(this.#core, this.#socket, copied).then(
      (copy) => {
        if (this.#isStopped) return copy.stop()
        this.#copy = copy
        this.feed()
      },
      (error) => this.#core.fail(toEngineError(error)),
    )
  }

  /** Data that came before it was asked for. */
  feed(): void {
    while (this.#copy && !this.#copy.isOver && this.#queue.size > 0) {
      const frame = this.#queue.shift()
      this.#copy.frame(frame[0] as number, frame, 0, frame.length)
    }
  }

  /** The server has failed it, or the request is over. */
  ended(): void {
    if (this.#copy?.failed() === false) this.#copy = undefined
  }

  forget(): void {
    this.#copy = undefined
  }

  /** The client has gone. */
  stop(): void {
    this.#isStopped = true
    this.#copy?.stop()
    this.#copy = undefined
  }
}

/**
 * COPY FROM STDIN of one server: frames go through untouched, up to the end of the data.
 * In the extended protocol the server ignores a Sync that comes while it takes data, and the request goes on behind it.
 * @see PostgreSQL documentation, "COPY Operations"
 */
import type { ByteSocket } from '../../net/byte-socket.js'
import { frontend } from '../../wire/tags.js'
import type { HeldServer } from '../state/held-servers.js'
import type { CopyIn } from './copy-in.js'

export class CopyToServer implements CopyIn {
  isOver = false
  readonly #held: HeldServer
  readonly #client: ByteSocket
  readonly #isExtended: boolean
  readonly #over: () => void

  /** `over` is called once, when no more of what the client sends is data. */
  constructor(
    held: HeldServer,
    client: ByteSocket,
    protocol: 'simple' | 'extended',
    over: () => void,
  ) {
    this.#held = held
    this.#client = client
    this.#isExtended = protocol === 'extended'
    this.#over = over
    held.relay.onDrained = () => client.resume()
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    if (tag === frontend.flush || (tag === frontend.sync && this.#isExtended)) return
    if (!this.#held.server.write(buffer.subarray(start, end), 0)) this.#client.pause()
    if (tag === frontend.copyDone || tag === frontend.copyFail) this.#end()
  }

  failed(): boolean {
    this.#end()
    return false
  }

  stop(): void {
    if (this.isOver) return
    this.isOver = true
    this.#held.relay.onDrained = undefined
    this.#client.resume()
  }

  #end(): void {
    if (this.isOver) return
    this.stop()
    this.#over()
  }
}

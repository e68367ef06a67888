/**
 * COPY FROM STDIN of one server: frames go through untouched.
 * In the extended protocol the Sync that was sent with Execute is ignored by the server, and another follows CopyDone.
 * @see PostgreSQL documentation, "COPY Operations"
 */
import type { ByteSocket } from '../net/byte-socket.js'
import { frontend } from '../wire/tags.js'
import type { CopyIn } from './copy-in.js'
import type { HeldServer } from './held-servers.js'

export class CopyToServer implements CopyIn {
  isOver = false
  readonly #held: HeldServer
  readonly #client: ByteSocket
  readonly #isExtended: boolean
  #dataEnded = false

  constructor(held: HeldServer, client: ByteSocket, protocol: 'simple' | 'extended') {
    this.#held = held
    this.#client = client
    this.#isExtended = protocol === 'extended'
    held.relay.onDrained = () => client.resume()
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    if (tag === frontend.sync) return this.#sync()
    if (tag === frontend.flush || this.#dataEnded) return
    const { server } = this.#held
    if (!server.write(buffer.subarray(start, end), 0)) this.#client.pause()
    if (tag !== frontend.copyDone && tag !== frontend.copyFail) return
    this.#dataEnded = true
    if (!this.#isExtended) this.stop()
  }

  failed(): boolean {
    this.#dataEnded = true
    if (!this.#isExtended) this.stop()
    return !this.isOver
  }

  stop(): void {
    this.isOver = true
    this.#held.relay.onDrained = undefined
    this.#client.resume()
  }

  #sync(): void {
    if (!this.#isExtended || !this.#dataEnded) return
    this.#held.relay.expect({ kind: 'sync' })
    this.#held.server.write(syncBytes, 1)
    this.stop()
  }
}

const syncBytes = Buffer.from([frontend.sync, 0, 0, 0, 4])

/**
 * Writes to a socket past Node's stream, which keeps books of each write that cost more than the write. Only while the
 * stream holds nothing back, so that the order stays; what the kernel does not take at once goes through the stream.
 * Uses the number of the socket, which Node tells of private handles only; where there is none the stream does all.
 */
import { writeSync } from 'node:fs'
import type { Socket } from 'node:net'

interface WithHandle {
  readonly _handle?: { readonly fd?: number } | null
}

export class DirectWriter {
  readonly #holder: WithHandle
  readonly #handle: object
  readonly #fd: number

  private constructor(holder: WithHandle, handle: object, fd: number) {
    this.#holder = holder
    this.#handle = handle
    this.#fd = fd
  }

  /** undefined for sockets whose bytes are not what is written (TLS), and where numbers are not told (Windows). */
  static of(socket: Socket): DirectWriter | undefined {
    if ('encrypted' in socket) return undefined
    const holder = socket as unknown as WithHandle
    const fd = holder._handle?.fd
    if (!holder._handle || typeof fd !== 'number' || fd < 0) return undefined
    return new DirectWriter(holder, holder._handle, fd)
  }

  /** How many bytes of [start, end) the kernel took: none where it would block, or where the stream is to say what is wrong. */
  write(buffer: Buffer, start: number, end: number): number {
    // the number may be another socket's as soon as the handle has gone
    if (this.#holder._handle !== this.#handle) return 0
    try {
      return writeSync(this.#fd, buffer, start, end - start)
    } catch {
      return 0
    }
  }
}

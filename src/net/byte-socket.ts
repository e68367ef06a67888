/**
 * One stream socket, TCP or Unix, plain or TLS: bytes in, bytes out, back-pressure both ways.
 * Knows nothing of frames. Reads into reused memory (read-buffer.ts); never copies what it forwards.
 */
import type { Socket } from 'node:net'
import { systemClock, type Timer } from '../base/clock.js'
import { DirectWriter } from './direct-write.js'
import { isShared, noteHeld, type ReadBuffer, sharedChunk } from './read-buffer.js'
import type { TlsFacts } from './tls-facts.js'

export interface ChunkReceiver {
  receive(chunk: Buffer): void
}

export interface ByteSocket {
  /** Each read. The chunk is borrowed: its memory is reused after the call returns. Reading starts when this is first set. */
  onChunk: (chunk: Buffer) => void
  /** Hears the same in the place of `onChunk`, from when it is set. */
  receiver?: ChunkReceiver | undefined
  /** After a `write` that returned false: the queue is empty again. */
  onDrain: () => void
  /** Once, when the socket is gone, whoever ended it; with the error when there was one. */
  onClose: (error?: Error) => void
  /**
   * Queues bytes, all or those at [start, end); they may be a chunk just borrowed from another socket. False: wait for
   * `onDrain` (the bytes are queued all the same). Does nothing on a socket that has ended.
   */
  write(buffer: Buffer, start?: number, end?: number): boolean
  /** The same for memory of the caller's, which he uses again as soon as the call returns. */
  writeCopied(buffer: Buffer, start: number, end: number): boolean
  /** `write` has returned false, and `onDrain` is still to come. */
  readonly isFull: boolean
  /** Bytes queued that the kernel has not taken. */
  readonly writableLength: number
  /** Stops reading from the kernel until `resume`. */
  pause(): void
  resume(): void
  /** From now on the other side's FIN does not end it: `end` does, which the other side may be waiting for. */
  holdOpen(): void
  /** Sends what is queued, then FIN; what still arrives is dropped. */
  end(last?: Buffer): void
  /** Drops the queue and closes now. */
  destroy(): void
  /** `[local]` for a Unix socket. */
  readonly remoteAddress: string
  readonly remotePort: number
  readonly encrypted: boolean
  /** Of an encrypted one. */
  readonly tls?: TlsFacts
}

/** Queue length from which `write` says false. */
export const WRITE_HIGH_WATER_BYTES = 65_536
/** How long an ended socket waits for the other side's FIN. */
const LINGER_MS = 5000

export const LOCAL_ADDRESS = '[local]'
const GONE_ADDRESS = '[gone]'

const ignore = (): void => undefined

/** Options of `new net.Socket` and `net.connect` that read into a ReadBuffer. */
export interface OnRead {
  buffer: () => Buffer | undefined
  callback: (size: number, memory: Uint8Array) => boolean
}

export class NodeByteSocket implements ByteSocket {
  onDrain: () => void = ignore
  onClose: (error?: Error) => void = ignore
  readonly #reader: ReadBuffer | undefined
  #socket: Socket | undefined
  #onChunk: ((chunk: Buffer) => void) | undefined
  receiver: ChunkReceiver | undefined
  #paused = false
  #ended = false
  #closed = false
  #wantsDrain = false
  #direct: DirectWriter | undefined
  /** The stream may hold bytes back. */
  #isQueued = false
  #error: Error | undefined
  #linger: Timer | undefined
  /** What Node read although paused: its streams can start a read a tick after they were stopped. */
  #kept: Buffer | undefined
  #closeWaits = false
  #isHeldOpen = false
  #remoteAddress: string = LOCAL_ADDRESS
  #remotePort = 0
  readonly tls?: TlsFacts

  /** `reader` when the socket reads through `onread` (see `onReadOf`); else its 'data' events are used. */
  constructor(options: { reader?: ReadBuffer; tls?: TlsFacts } = {}) {
    this.#reader = options.reader
    if (options.tls) this.tls = options.tls
  }

  /** The `onread` option for a net.Socket that belongs to this one. */
  get onRead(): OnRead {
    const reader = this.#reader as ReadBuffer
    const take = (chunk: Buffer) => this.#take(chunk)
    let read: Uint8Array | undefined
    let isAsItWas = false
    return {
      buffer: () => {
        if (isAsItWas) return undefined
        const memory = reader.next()
        // asked behind a read Node goes on with what it has when it is given nothing, which is cheaper
        const isSame = memory === read
        read = undefined
        return isSame ? undefined : memory
      },
      callback: (size, memory) => {
        const chunk = sharedChunk(memory, size)
        isAsItWas = chunk !== undefined
        if (chunk) this.#take(chunk)
        else {
          reader.lend(size, memory as Buffer, take)
          read = memory
        }
        return true
      },
    }
  }

  /** Binds the Node socket, connected and paused. Called once. */
  attach(socket: Socket): void {
    this.#socket = socket
    this.#direct = this.tls ? undefined : DirectWriter.of(socket)
    // A TCP peer that has gone already has no address any more; it must not pass for a local one.
    const isTcp = socket.localAddress !== undefined
    this.#remoteAddress = socket.remoteAddress ?? (isTcp ? GONE_ADDRESS : LOCAL_ADDRESS)
    this.#remotePort = socket.remotePort ?? 0
    if (!this.#reader) socket.on('data', this.#onData)
    socket.pause()
    socket.on('error', this.#onError)
    socket.on('drain', this.#onDrainEvent)
    socket.on('close', this.#onCloseEvent)
    // The peer's FIN shows while we wait for data only when someone consumes the end of the stream.
    socket.on('end', this.#onEndEvent)
    if (this.#onChunk && !this.#paused) socket.resume()
  }

  /**
   * Takes the Node socket away, paused; this object is then dead and calls nothing any more. The new owner reads `back`
   * again, and what came behind it.
   */
  detach(back?: Buffer): Socket | undefined {
    const socket = this.#socket
    if (!socket || this.#closed) return undefined
    // Bytes read but not delivered would be lost to the new owner; before a TLS handshake they are an attack.
    if (this.#kept && !back) this.destroy()
    if (socket.destroyed) return undefined
    socket.pause()
    if (back) socket.unshift(this.#kept ? Buffer.concat([back, this.#kept]) : back)
    socket.off('data', this.#onData)
    socket.off('error', this.#onError)
    socket.off('drain', this.#onDrainEvent)
    socket.off('close', this.#onCloseEvent)
    socket.off('end', this.#onEndEvent)
    socket.allowHalfOpen = false
    this.#socket = undefined
    this.#direct = undefined
    this.#ended = true
    this.#closed = true
    return socket
  }

  get onChunk(): (chunk: Buffer) => void {
    return this.#onChunk ?? ignore
  }

  set onChunk(use: (chunk: Buffer) => void) {
    const first = this.#onChunk === undefined
    this.#onChunk = use
    if (first && !this.#paused) this.#socket?.resume()
  }

  get writableLength(): number {
    if (!this.#isQueued) return 0
    const queued = this.#socket?.writableLength ?? 0
    this.#isQueued = queued > 0
    return queued
  }

  get isFull(): boolean {
    return this.#wantsDrain
  }

  get remoteAddress(): string {
    return this.#remoteAddress
  }

  get remotePort(): number {
    return this.#remotePort
  }

  get encrypted(): boolean {
    return this.tls !== undefined
  }

  write(buffer: Buffer, start = 0, end = buffer.length): boolean {
    const from = this.#writeNow(buffer, start, end)
    if (from === end) return true
    const rest = from === 0 && end === buffer.length ? buffer : buffer.subarray(from, end)
    return this.#writeLater(isShared(buffer) ? Buffer.from(rest) : rest, buffer)
  }

  writeCopied(buffer: Buffer, start: number, end: number): boolean {
    const from = this.#writeNow(buffer, start, end)
    return from === end || this.#writeLater(Buffer.from(buffer.subarray(from, end)))
  }

  /** Where what must go through the stream begins. */
  #writeNow(buffer: Buffer, start: number, end: number): number {
    if (this.#ended) return end
    if (!this.#direct) return start
    if (this.writableLength > 0) return start
    return start === end ? end : start + this.#direct.write(buffer, start, end)
  }

  #writeLater(bytes: Buffer, lent?: Buffer): boolean {
    const socket = this.#socket
    if (!socket || socket.destroyed || bytes.length === 0) return true
    const below = socket.write(bytes)
    if (socket.writableLength === 0) return true
    this.#isQueued = true
    if (lent) noteHeld(lent)
    if (below) return true
    this.#wantsDrain = true
    return false
  }

  pause(): void {
    if (this.#paused) return
    this.#paused = true
    if (!this.#ended) this.#socket?.pause()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    if (!this.#onChunk) return
    const kept = this.#kept
    this.#kept = undefined
    if (kept) this.#take(kept)
    if (this.#closeWaits) this.#onCloseEvent()
    else if (!this.#paused) this.#socket?.resume()
  }

  holdOpen(): void {
    this.#isHeldOpen = true
  }

  end(last?: Buffer): void {
    if (this.#ended || !this.#socket) return
    if (last) this.write(last)
    this.#ended = true
    this.#kept = undefined
    this.#socket.end()
    // Reading on keeps unread input from turning our FIN into a reset, which could take the last message with it.
    this.#socket.resume()
    this.#linger = systemClock.after(LINGER_MS, () => this.destroy())
  }

  destroy(): void {
    this.#ended = true
    this.#kept = undefined
    this.#socket?.destroy()
    if (this.#closeWaits) this.#onCloseEvent()
  }

  #take(chunk: Buffer): void {
    if (this.#ended) return
    if (!this.#paused) {
      if (this.receiver) return this.receiver.receive(chunk)
      if (this.#onChunk) return this.#onChunk(chunk)
    }
    this.#kept = this.#kept ? Buffer.concat([this.#kept, chunk]) : Buffer.from(chunk)
    this.#socket?.pause()
  }

  readonly #onData = (chunk: Buffer): void => this.#take(chunk)

  readonly #onError = (error: Error): void => {
    this.#error ??= error
  }

  readonly #onEndEvent = (): void => {
    if (this.#isHeldOpen) return
    this.#direct = undefined
    this.#socket?.end()
  }

  readonly #onDrainEvent = (): void => {
    if (!this.#wantsDrain) return
    this.#wantsDrain = false
    if (!this.#ended) this.onDrain()
  }

  readonly #onCloseEvent = (): void => {
    if (this.#closed) return
    this.#closeWaits = this.#kept !== undefined
    if (this.#closeWaits) return
    this.#closed = true
    this.#ended = true
    this.#linger?.cancel()
    this.onClose(this.#error)
  }
}

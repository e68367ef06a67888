/** COPY FROM STDIN while it takes data: what the session hands the client's frames to instead of reading them itself. */
export interface CopyIn {
  /** Any frame of the client; borrowed. */
  frame(tag: number, buffer: Buffer, start: number, end: number): void
  /** The server ended the COPY with an error. True: still needed, to swallow what the client sends up to its Sync. */
  failed(): boolean
  /** True once nothing more of the client belongs to the COPY. */
  readonly isOver: boolean
  /** The client has gone. */
  stop(): void
}

/** A NotificationResponse, read once for all its listeners. @see PostgreSQL documentation, "Message Formats" */
import { readCString } from '../server/read-cstring.js'

export interface Notification {
  /** The message as the server sent it; owned, shared by all listeners. */
  readonly frame: Buffer
  /** Of the server process whose transaction notified. */
  readonly processId: number
  readonly channel: string
  readonly payload: string
  /** No byte above 127: the same in every client encoding. */
  readonly isAscii: boolean
}

/** Byte1 'A' · Int32 length · Int32 process id · String channel · String payload. @throws WIRE_TRUNCATED */
export function readNotification(buffer: Buffer, start: number, end: number): Notification {
  const frame = Buffer.from(buffer.subarray(start, end))
  const channel = readCString(frame, 9, frame.length)
  const payload = readCString(frame, channel.next, frame.length)
  return {
    frame,
    processId: frame.readInt32BE(5),
    channel: channel.text,
    payload: payload.text,
    isAscii: !frame.subarray(9).some((byte) => byte > 0x7f),
  }
}

/** The same message in the name of another process. */
export function withProcessId({ frame }: Notification, processId: number): Buffer {
  const copy = Buffer.from(frame)
  copy.writeInt32BE(processId, 5)
  return copy
}

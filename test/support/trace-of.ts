/** Bytes as text, for assertions: conversations are compared in libpq's trace form. */
import { FrameReader } from '../../src/wire/frame-reader.js'
import { ConnectionTrace, type Direction, traceFrame } from '../../src/wire/trace.js'

/** The lines of frames after startup, table OIDs and process ids as NNNN. */
export function traceOf(direction: Direction, bytes: Buffer | readonly Buffer[]): string[] {
  const lines: string[] = []
  const reader = new FrameReader((_tag, buffer, start, end) =>
    lines.push(traceFrame(direction, buffer, start, end, { regress: true })),
  )
  for (const chunk of Buffer.isBuffer(bytes) ? [bytes] : bytes) reader.push(chunk)
  if (reader.pendingBytes > 0) lines.push(`${direction}\t(${reader.pendingBytes} bytes of a frame)`)
  return lines
}

/** The lines of a whole conversation from its first byte, in the order in which the chunks were seen. */
export function traceOfConversation(
  chunks: readonly { readonly from: 'client' | 'server'; readonly bytes: Buffer }[],
): string[] {
  const lines: string[] = []
  const trace = new ConnectionTrace((line) => lines.push(line), { regress: true })
  for (const chunk of chunks) trace[chunk.from](chunk.bytes)
  return lines
}

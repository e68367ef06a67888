/**
 * COPY … TO STDOUT over pg-copy-streams, chunk by chunk with back-pressure. The chunks are bytes of the stream, cut
 * anywhere. Breaking off destroys the connection: pg-copy-streams would leave it paused for ever.
 */
import type pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { engineError, isEngineError } from '../errors/engine-error.js'
import { clientWhere, destroySocket } from './connect.js'
import { isServerError, serverFailure } from './server-error.js'

export interface CopyOutResult {
  readonly rows: number
  readonly bytes: number
}

export interface CopyOutOptions {
  readonly signal?: AbortSignal
}

/**
 * Runs `sql` and hands every chunk to `onChunk`; the next one waits until it has resolved. When `onChunk` fails or
 * `signal` aborts, the connection is destroyed and the promise rejects; after a server error it stays usable.
 */
export async function copyOut(
  client: pg.Client,
  sql: string,
  onChunk: (chunk: Buffer) => void | Promise<void>,
  options: CopyOutOptions = {},
): Promise<CopyOutResult> {
  const { signal } = options
  const stream = copyTo(sql)
  let bytes = 0
  let taking = false
  const lost = () => stream.destroy(new Error('connection terminated'))
  const aborted = () => stream.destroy(engineError('INTERRUPTED', { what: 'COPY' }))
  client.once('end', lost)
  signal?.addEventListener('abort', aborted, { once: true })
  try {
    if (signal?.aborted) throw engineError('INTERRUPTED', { what: 'COPY' })
    client.query(stream)
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length
      taking = true
      const pending = onChunk(chunk)
      if (pending !== undefined) await pending
      taking = false
    }
    return { rows: stream.rowCount, bytes }
  } catch (error) {
    if (!isServerError(error)) destroySocket(client)
    // what the taker of the chunks throws is its own; all else is of the connection, in whichever words pg says it
    throw taking || isEngineError(error) ? error : serverFailure(error, clientWhere(client))
  } finally {
    client.removeListener('end', lost)
    signal?.removeEventListener('abort', aborted)
  }
}

/**
 * One statement asked of any server that speaks the protocol, in three ways, and its answer in a form that can be
 * compared: column names and types, rows, tag, or the error. Made of plain frames, so that no driver stands between.
 */
import { openServer } from '../../src/server/open-server.js'
import type { ServerConnection } from '../../src/server/server-connection.js'
import {
  decodeCommandComplete,
  decodeDataRow,
  decodeRowDescription,
} from '../../src/wire/backend-messages.js'
import { decodeErrorFields } from '../../src/wire/error-response.js'
import { FrameWriter } from '../../src/wire/frame-writer.js'
import { backend, frontend } from '../../src/wire/tags.js'

export type Mode = 'simple' | 'extended text' | 'extended binary'
export const modes: readonly Mode[] = ['simple', 'extended text', 'extended binary']

export interface Answer {
  /** `name:oid` of the last result. */
  columns: string[]
  /** Text, or hex of the binary form. */
  rows: (string | null)[][]
  tag: string
  error?: { sqlstate: string; message: string; hint?: string }
}

export interface Target {
  readonly name: string
  readonly port: number
  readonly database: string
}

export function openTarget(target: Target): Promise<ServerConnection> {
  return openServer(
    { host: '127.0.0.1', port: target.port, user: 'postgres', database: target.database },
    { timeoutMs: 10_000 },
  )
}

/** A parameter as Parse and Bind carry it; type 0 leaves the type to the server. */
export interface AskedParameter {
  readonly type: number
  readonly format: 0 | 1
  readonly bytes: Buffer | null
}

/** Runs `sql` and waits for ReadyForQuery. Parameters are for the extended modes. */
export function ask(
  server: ServerConnection,
  sql: string,
  mode: Mode,
  parameters: readonly AskedParameter[] = [],
): Promise<Answer> {
  const answer: Answer = { columns: [], rows: [], tag: '' }
  return new Promise((resolve, reject) => {
    server.receiver = {
      wholeRows: true,
      endOfRead: () => undefined,
      serverLost: reject,
      rows: (buffer, start, end) => {
        for (let at = start; at < end; ) {
          const next = at + buffer.readInt32BE(at + 1) + 1
          if (buffer[at] === backend.dataRow)
            answer.rows.push(rowOf(buffer.subarray(at + 5, next), mode))
          at = next
        }
      },
      frame: (tag, buffer, start, end) => {
        if (tag !== backend.readyForQuery) return note(answer, tag, buffer, start, end)
        server.ready(buffer[start + 5]!)
        server.receiver = undefined
        resolve(answer)
      },
    }
    server.write(mode === 'simple' ? simpleFrames(sql) : extendedFrames(sql, mode, parameters), 1)
  })
}

function note(answer: Answer, tag: number, buffer: Buffer, start: number, end: number): void {
  const body = buffer.subarray(start + 5, end)
  if (tag === backend.rowDescription) {
    answer.columns = decodeRowDescription(body).map((field) => `${field.name}:${field.typeOid}`)
  } else if (tag === backend.commandComplete) answer.tag = decodeCommandComplete(body)
  else if (tag === backend.errorResponse) {
    const fields = decodeErrorFields(buffer.subarray(start + 5, end))
    const hint = fields['H'] === undefined ? {} : { hint: fields['H'] }
    answer.error = { sqlstate: fields['C'] ?? '', message: fields['M'] ?? '', ...hint }
  }
}

const simpleFrames = (sql: string): Buffer =>
  new FrameWriter().begin(frontend.query).cstring(sql).end().take()

function extendedFrames(sql: string, mode: Mode, parameters: readonly AskedParameter[]): Buffer {
  const writer = new FrameWriter()
  writer.begin(frontend.parse).cstring('').cstring(sql).int16(parameters.length)
  for (const { type } of parameters) writer.int32(type)
  writer.end()
  writer.begin(frontend.bind).cstring('').cstring('').int16(parameters.length)
  for (const { format } of parameters) writer.int16(format)
  writer.int16(parameters.length)
  for (const { bytes } of parameters) {
    writer.int32(bytes === null ? -1 : bytes.length)
    if (bytes) writer.bytes(bytes)
  }
  if (mode === 'extended binary') writer.int16(1).int16(1)
  else writer.int16(0)
  writer.end()
  writer.begin(frontend.describe).byte(0x50).cstring('').end()
  writer.begin(frontend.execute).cstring('').int32(0).end()
  return writer.begin(frontend.sync).end().take()
}

const rowOf = (body: Buffer, mode: Mode): (string | null)[] =>
  decodeDataRow(body).map((value) =>
    value === null ? null : value.toString(mode === 'extended binary' ? 'hex' : 'utf8'),
  )

/** Rows in an order of their own, for answers without ORDER BY. */
export const asMultiset = (rows: (string | null)[][]): string[] =>
  rows.map((row) => JSON.stringify(row)).sort()

/**
 * pg_dump 18 from npm (PostgreSQL's own, compiled to WASM) against a live server: it runs in a worker thread, where
 * it may block, and speaks over a connection of ours that is already logged in, so that no password goes there.
 *
 *   worker: bytes out → post → Atomics.wait … main: socket.write, whole reply → post → Atomics.notify
 */
import { createRequire } from 'node:module'
import type { Duplex } from 'node:stream'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { engineError } from '../../errors/engine-error.js'
import { type HostTarget, openHostClient, takeSocket } from '../../pg/host-client.js'
import { placeOf } from '../side.js'

/** Above every version of PostgreSQL's own messages; pg_dump asks for nothing larger than a catalog row. */
const WAIT_MS = 60_000

// In text form because a worker starts from a file of JavaScript, and sources run untranslated in tests.
const workerCode = `
const { receiveMessageOnPort, workerData } = require('node:worker_threads')
const { pgDump } = require(workerData.module)
const { port, flag, args, greeting, waitMs } = workerData
const turn = new Int32Array(flag)
let started = false
let unsent = Buffer.alloc(0)
// Requests end with Query or Sync; only a whole one has an answer to wait for.
const countRequests = (bytes) => {
  unsent = Buffer.concat([unsent, bytes])
  let requests = 0
  let at = 0
  while (unsent.length - at >= 5 && unsent.length - at > unsent.readInt32BE(at + 1)) {
    const tag = unsent[at]
    if (tag === 0x51 || tag === 0x53) requests++
    if (tag === 0x58) requests = -1
    at += unsent.readInt32BE(at + 1) + 1
  }
  unsent = unsent.subarray(at)
  return requests
}
const ask = (bytes, requests) => {
  Atomics.store(turn, 0, 0)
  port.postMessage({ bytes, requests })
  if (requests === 0) return undefined
  if (Atomics.wait(turn, 0, 0, waitMs) === 'timed-out') throw new Error('no answer from the server')
  return receiveMessageOnPort(port).message
}
const execProtocolRawStream = (lent, { onRawData }) => {
  const bytes = Buffer.from(lent)
  if (!started) {
    const code = bytes.readInt32BE(4)
    if (code === 80877103 || code === 80877104) return onRawData(new Uint8Array([0x4e]))
    started = true
    return onRawData(new Uint8Array(greeting))
  }
  const requests = countRequests(bytes)
  if (requests < 0) return undefined
  const answer = ask(bytes, requests)
  if (answer) onRawData(answer)
}
const pg = {
  execProtocolRawStream,
  query: async () => ({ rows: [{ search_path: 'public' }] }),
  exec: async () => [],
}
pgDump({ pg, args }).then((file) => file.text()).then(
  (text) => port.postMessage({ text }),
  (error) => port.postMessage({ error: String((error && error.message) || error) }),
)
`

type FromWorker =
  | { readonly bytes: Uint8Array; readonly requests: number }
  | { readonly text: string }
  | { readonly error: string }

/** What a server says after login, for the pg_dump inside: it takes over a session that has begun. */
function greeting(parameters: Readonly<Record<string, string>>): Buffer {
  const frame = (tag: string, body: Buffer): Buffer => {
    const head = Buffer.alloc(5)
    head.write(tag, 0, 'latin1')
    head.writeInt32BE(body.length + 4, 1)
    return Buffer.concat([head, body])
  }
  return Buffer.concat([
    frame('R', Buffer.alloc(4)),
    ...Object.entries(parameters).map(([name, value]) =>
      frame('S', Buffer.from(`${name}\0${value}\0`)),
    ),
    frame('K', Buffer.alloc(8)),
    frame('Z', Buffer.from('I')),
  ])
}

/** Collects replies: `onReply` once with everything up to the `wanted`th ReadyForQuery. */
class ReplyCollector {
  #held: Buffer = Buffer.alloc(0)
  #scanned = 0
  #wanted = 0
  #onReply: ((bytes: Buffer) => void) | undefined

  expect(requests: number, onReply: (bytes: Buffer) => void): void {
    this.#wanted = requests
    this.#onReply = onReply
  }

  push(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk])
    while (this.#held.length - this.#scanned >= 5) {
      const end = this.#scanned + this.#held.readInt32BE(this.#scanned + 1) + 1
      if (end > this.#held.length) return
      if (this.#held[this.#scanned] === 0x5a) this.#wanted--
      this.#scanned = end
      if (this.#wanted !== 0) continue
      const reply = this.#held.subarray(0, end)
      this.#held = Buffer.from(this.#held.subarray(end))
      this.#scanned = 0
      this.#onReply?.(reply)
      return
    }
  }
}

function serve(socket: Duplex, port: MessagePort, turn: Int32Array): Promise<string> {
  const replies = new ReplyCollector()
  socket.on('data', (chunk: Buffer) => replies.push(chunk))
  socket.resume()
  return new Promise((resolve, reject) => {
    socket.on('close', () => reject(new Error('the server closed the connection')))
    port.on('message', (message: FromWorker) => {
      if ('text' in message) return resolve(message.text)
      if ('error' in message) return reject(new Error(message.error))
      if (message.requests > 0) {
        replies.expect(message.requests, (bytes) => {
          port.postMessage(bytes)
          Atomics.store(turn, 0, 1)
          Atomics.notify(turn, 0)
        })
      }
      socket.write(message.bytes)
    })
  })
}

const parameterNames = [
  'server_version',
  'server_encoding',
  'is_superuser',
  'TimeZone',
  'DateStyle',
]

/** Runs pg_dump with `args` against the server; its text. @throws RESHARD_SCHEMA_DUMP */
export async function dumpInWorker(target: HostTarget, args: readonly string[]): Promise<string> {
  const client = await openHostClient(target, { applicationName: 'pgshard schema' })
  const settings: Record<string, string> = {
    client_encoding: 'UTF8',
    standard_conforming_strings: 'on',
    integer_datetimes: 'on',
  }
  for (const name of parameterNames) {
    const { rows } = await client.query('SELECT current_setting($1) AS value', [name])
    settings[name] = (rows[0] as { value: string }).value
  }
  const socket = takeSocket(client)
  const { port1, port2 } = new MessageChannel()
  const flag = new SharedArrayBuffer(4)
  const module = createRequire(import.meta.url).resolve('@electric-sql/pglite-tools/pg_dump')
  const worker = new Worker(workerCode, {
    eval: true,
    workerData: {
      module,
      port: port2,
      flag,
      // A connection string, because the package adds `-U postgres` behind our arguments.
      args: [...args, '-d', 'dbname=postgres sslmode=disable gssencmode=disable'],
      greeting: greeting(settings),
      waitMs: WAIT_MS,
    },
    transferList: [port2],
    stdout: true,
    stderr: true,
  })
  const died = new Promise<never>((_, reject) => worker.once('error', reject))
  try {
    return await Promise.race([serve(socket, port1, new Int32Array(flag)), died])
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw engineError('RESHARD_SCHEMA_DUMP', { server: placeOf(target), reason }, { cause: error })
  } finally {
    port1.close()
    socket.destroy()
    await worker.terminate()
  }
}

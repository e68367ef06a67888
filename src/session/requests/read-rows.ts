/**
 * The rows of a read over any shards, kept by the session instead of shown to the client: for writes of what a query finds.
 * Runs in the open transaction, whose primaries are held already.
 */
import { type EngineError, engineError, toEngineError } from '../../errors/engine-error.js'
import type { Plan, PlannedStatement } from '../../plan/plan.js'
import { serverErrorOf } from '../../server/server-error.js'
import { listShards } from '../../sharding/shard-set.js'
import { decodeDataRow } from '../../wire/backend-messages.js'
import { FrameReader } from '../../wire/frame-reader.js'
import { backend } from '../../wire/tags.js'
import type { SessionCore } from '../session-core.js'
import type { HeldServer } from '../state/held-servers.js'
import type { CarriedRow } from './over-shards/carried-rows.js'
import { runGather } from './over-shards/run-gather.js'
import { runMerge } from './over-shards/run-merge.js'
import { SeveralRequest } from './over-shards/several-request.js'
import { runOnServers } from './over-shards/write-parts.js'
import { refusal } from './request-route.js'

/** Rows held at once. */
const MOST_BYTES = 67_108_864

export interface Question {
  readonly statement: PlannedStatement
  readonly plan: Plan
  readonly sql: string
  readonly types: readonly number[]
  readonly formats: readonly number[]
}

/** Servers that `work` only reads from are not said to have written. */
export async function onlyReading<T>(
  helds: readonly HeldServer[],
  work: () => Promise<T>,
): Promise<T> {
  const before = helds.map((held) => held.wrote)
  try {
    return await work()
  } finally {
    for (const [i, held] of helds.entries()) held.wrote = before[i] as boolean
  }
}

/** @throws the refusal of the plan, the servers' errors, WRITE_SELECTED_SIZE */
export async function readRows(
  core: SessionCore,
  request: SeveralRequest,
  question: Question,
  helds: readonly HeldServer[],
): Promise<CarriedRow[]> {
  const { plan, sql, types, formats } = question
  switch (plan.how) {
    case 'relay':
    case 'concatenate': {
      const shards = plan.anyShard
        ? [helds[0]!.shard]
        : listShards(plan.target, core.access.planner.shardCount)
      const bytes = request.asking(sql, types, formats)
      const some = helds.filter((held) => shards.includes(held.shard))
      const texts = some.map((held) => ({ held, bytes }))
      const replies = await onlyReading(some, () =>
        runOnServers(core, texts, shards.length).catch((error) => {
          throw sizeError(toEngineError(error))
        }),
      )
      return replies.flatMap((reply) => reply.rows.map((row) => decodeDataRow(row.subarray(5))))
    }
    case 'merge':
    case 'gather':
      return captured(core, SeveralRequest.ofQuestion(request, question), plan)
    case 'refuse':
      throw refusal(plan, core)
    default:
      throw engineError('INTERNAL', { message: `rows of a plan of kind ${plan.how}` })
  }
}

const sizeError = (error: EngineError): EngineError =>
  error.code === 'WRITE_RETURNING_SIZE'
    ? engineError('WRITE_SELECTED_SIZE', { limit: MOST_BYTES })
    : error

/** Takes what would go to the client. */
class RowSink {
  readonly rows: CarriedRow[] = []
  error: EngineError | undefined
  readonly #reader = new FrameReader((tag, buffer, start, end) =>
    this.#frame(tag, buffer, start, end),
  )
  readonly #tooMuch: () => void
  #bytes = 0

  constructor(tooMuch: () => void) {
    this.#tooMuch = tooMuch
  }

  forward(buffer: Buffer, start: number, end: number): void {
    this.#reader.push(Buffer.from(buffer.subarray(start, end)))
  }

  append(bytes: Buffer): void {
    this.#reader.push(bytes)
  }

  flush(): boolean {
    return true
  }

  #frame(tag: number, buffer: Buffer, start: number, end: number): void {
    if (tag === backend.errorResponse) this.error ??= serverErrorOf(buffer, start, end)
    if (tag !== backend.dataRow || this.error) return
    this.#bytes += end - start
    if (this.#bytes > MOST_BYTES) {
      this.rows.length = 0
      this.error = engineError('WRITE_SELECTED_SIZE', { limit: MOST_BYTES })
      return this.#tooMuch()
    }
    const values = decodeDataRow(Buffer.from(buffer.subarray(start + 5, end)))
    this.rows.push(values)
  }
}

/** The ways that answer a client, with the session's answer exchanged for a place of ours. */
function captured(core: SessionCore, request: SeveralRequest, plan: Plan): Promise<CarriedRow[]> {
  return new Promise((resolve, reject) => {
    const sink = new RowSink(() => core.held.cancel())
    const ended = (error?: EngineError): void => {
      const found = sink.error ?? error
      if (found) reject(found)
      else resolve(sink.rows)
    }
    const inner = Object.create(core, {
      output: { value: sink },
      fanOut: { value: undefined, writable: true },
      conclude: { value: () => undefined },
      complete: { value: () => ended() },
      fail: { value: (error: EngineError) => ended(error) },
      noteStatus: { value: core.noteStatus.bind(core) },
    }) as SessionCore
    const run = plan.how === 'merge' ? runMerge : runGather
    run(inner, request, plan)
  })
}

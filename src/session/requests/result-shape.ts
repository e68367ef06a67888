/**
 * A prepared statement keeps the result columns that its client was told. The server on which it was prepared sees to
 * that; another server, where it is prepared anew after the schema changed, cannot know. There it is asked first, and
 * the client hears what PostgreSQL would have said.
 * @see RevalidateCachedQuery in PostgreSQL's plancache.c
 */

import type { EngineError } from '../../errors/engine-error.js'
import type { ServerReceiver } from '../../server/server-connection.js'
import { type SharedStatement, shapeOf } from '../../server/shared-statement.js'
import { encodeErrorResponse } from '../../wire/error-response.js'
import { FrameWriter } from '../../wire/frame-writer.js'
import { backend } from '../../wire/tags.js'
import type { SessionCore } from '../session-core.js'
import type { HeldServer } from '../state/held-servers.js'
import { namedFrame, parseFrame, syncFrame } from './batch.js'
import type { Step } from './batch-steps.js'

/** Calls `then` once no statement of the request would be prepared anew with other columns than its client knows; with the error in the place of one that would. */
export function whenShapesHold(
  core: SessionCore,
  held: HeldServer,
  steps: Step[],
  then: (steps: Step[]) => void,
  asked: Set<SharedStatement> = new Set(),
): void {
  const at = firstDoubtful(core, held, steps, asked)
  const doubtful = steps[at]?.statement?.shared
  if (!doubtful) return then(steps)
  asked.add(doubtful)
  void askShape(core, held, doubtful).then((frame) => {
    const sound: Step[] = frame ? [...steps.slice(0, at), { kind: 'error', frame }] : steps
    whenShapesHold(core, held, sound, then, asked)
  })
}

/** Position of the first step whose statement would be prepared anew on `held` although the schema has changed; -1 when there is none. */
function firstDoubtful(
  core: SessionCore,
  held: HeldServer,
  steps: readonly Step[],
  asked: ReadonlySet<SharedStatement>,
): number {
  const { epoch } = core.access.statements
  return steps.findIndex((step, at) => {
    const shared = step.statement?.shared
    if (!shared || shared.epoch === epoch || shared.shape === undefined) return false
    if (asked.has(shared) || !usesStatement(step)) return false
    const name = step.kind === 'bind' ? step.item.statement : step.item.name
    if (name === '' ? held.server.unnamed === shared : held.server.hasPrepared(shared)) return false
    return !steps
      .slice(0, at)
      .some((one) => one.kind === 'parse' && one.statement.shared === shared)
  })
}

const usesStatement = (
  step: Step,
): step is Extract<Step, { kind: 'bind' }> | Extract<Step, { kind: 'describe' }> =>
  step.kind === 'bind' || (step.kind === 'describe' && step.item.what === 'S')

/** Prepares the statement without a name and looks at its columns. Resolves with the ErrorResponse for the client, if any; never when the server is lost. */
function askShape(
  core: SessionCore,
  held: HeldServer,
  shared: SharedStatement,
): Promise<Buffer | undefined> {
  const { server } = held
  const prelude = core.held.prelude(held, core.transaction)
  const parse = parseFrame('', shared.text, server.typesHere(shared.parameterTypes))
  const bytes = [...prelude.bytes, parse, namedFrame('describe', 'S', ''), syncFrame]
  return new Promise((resolve) => {
    server.unnamed = undefined
    server.receiver = new ShapeReceiver(held, prelude.syncs + 1, (failure, shape) => {
      if (!failure) for (const expectation of prelude.expectations) expectation.done?.()
      resolve(failure ?? (shape === shared.shape ? undefined : changedFrame))
    })
    server.write(Buffer.concat(bytes), prelude.syncs + 1)
  })
}

class ShapeReceiver implements ServerReceiver {
  readonly #held: HeldServer
  readonly #done: (failure: Buffer | undefined, shape: string | undefined) => void
  #readies: number
  #failure: Buffer | undefined
  #shape: string | undefined

  constructor(
    held: HeldServer,
    readies: number,
    done: (failure: Buffer | undefined, shape: string | undefined) => void,
  ) {
    this.#held = held
    this.#readies = readies
    this.#done = done
  }

  rows(): void {
    // none are asked for
  }

  endOfRead(): void {
    // nothing is forwarded
  }

  serverLost(error: EngineError): void {
    const { relay } = this.#held
    relay.expect({ kind: 'sync' }) // the request is not answered yet
    relay.serverLost(error)
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    const { server, relay } = this.#held
    switch (tag) {
      case backend.parameterStatus:
        return server.parameterStatus(buffer, start, end)
      case backend.errorResponse:
        this.#failure ??= Buffer.from(buffer.subarray(start, end))
        return
      case backend.rowDescription:
      case backend.noData:
        this.#shape = shapeOf(buffer, start, end)
        return
      case backend.readyForQuery:
        server.ready(buffer[start + 5] as number)
        if (--this.#readies > 0) return
        server.receiver = relay
        this.#done(this.#failure, this.#shape)
    }
  }
}

/** As PostgreSQL writes it; drivers know it by its routine and prepare the statement anew. */
const changedFrame = (() => {
  const writer = new FrameWriter(160)
  encodeErrorResponse(writer, {
    S: 'ERROR',
    V: 'ERROR',
    C: '0A000',
    M: 'cached plan must not change result type',
    F: 'plancache.c',
    R: 'RevalidateCachedQuery',
  })
  return writer.take()
})()

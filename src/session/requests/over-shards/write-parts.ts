/** Texts of a write, each sent to its server behind what that server must hear first, and the books that follow. */
import { type EngineError, engineError } from '../../../errors/engine-error.js'
import { runWrites, type WriteReply } from '../../../executor/write-run.js'
import type { DrawnResult } from '../../../plan/split-program.js'
import type { ServerResult } from '../../../server/query-receiver.js'
import { queryFrame } from '../../../server/server-connection.js'
import type { SessionCore } from '../../session-core.js'
import { applyCompleted, completedOf } from '../../state/apply-effects.js'
import type { HeldServer } from '../../state/held-servers.js'
import type { SeveralRequest } from './several-request.js'

export interface ServerText {
  readonly held: HeldServer
  readonly bytes: Buffer
}

/**
 * Runs them at once, in the client's transaction where it has one. `of`: how many shards the statement concerns;
 * `silent`: what they notice was said by another shard before.
 * @throws the first error by time; servers that were lost are thrown away
 */
export async function runOnServers(
  core: SessionCore,
  texts: readonly ServerText[],
  of: number,
  silent = false,
): Promise<readonly WriteReply[]> {
  if (texts.length === 0) return []
  const parts = texts.map(({ held, bytes }) => {
    const prelude = core.held.prelude(held, core.transaction)
    return {
      shard: held.shard,
      server: held.server,
      bytes: Buffer.concat([...prelude.bytes, bytes]),
      preludeReadies: prelude.syncs,
      preludeDone: () => {
        for (const expectation of prelude.expectations) expectation.done?.()
      },
    }
  })
  for (const { held } of texts) held.server.unnamed = undefined
  const outcome = await runWrites(parts, {
    of,
    failed: () => core.held.cancel(),
    // nothing is flushed before the last shard has answered, and by then its memory is read into again
    notice: (buffer, start, end) => {
      if (!silent) core.output.append(buffer.subarray(start, end))
    },
  })
  for (const { held } of texts) {
    if (outcome.lost.includes(held.shard)) core.held.discard(held, 'connection lost')
    else held.server.receiver = held.relay
    held.worked = true
    held.wrote = true
  }
  if (outcome.error) throw cancelledOr(core, outcome.error)
  return outcome.replies
}

const cancelledOr = (core: SessionCore, error: EngineError): EngineError =>
  error.sqlstate === '57014' && core.timedOut ? core.timedOut : error

/** What a completed statement has done to the session; it ran on all of these servers. */
export function bookWrite(
  core: SessionCore,
  request: SeveralRequest,
  helds: readonly HeldServer[],
  tag: string,
): void {
  const { statement } = request
  const completed = { ...completedOf(statement, '', core.transaction.startup), sql: request.sql }
  const [lead, ...others] = helds
  if (lead) applyCompleted(core, lead, completed, tag)
  for (const held of others) {
    held.server.traffic.writes++
    if (statement.effects.taints) held.server.tainted = true
  }
}

/** Asks a server `count` queries in one string, without parameters; with settings and BEGIN before it where they are due. @throws the server's error */
export async function askServer(
  core: SessionCore,
  held: HeldServer,
  { sql, count }: { readonly sql: string; readonly count: number },
): Promise<readonly (ServerResult & DrawnResult)[]> {
  const prelude = core.held.prelude(held, core.transaction)
  held.server.unnamed = undefined
  held.worked = true
  const bytes = Buffer.concat([...prelude.bytes, queryFrame(sql)])
  const results = await held.server.ask(bytes, prelude.syncs + 1)
  for (const expectation of prelude.expectations) expectation.done?.()
  // what the prelude was answered with stands first
  return results.slice(results.length - count)
}

/** What a server says of the client's own text, and the types of its parameters; those of users are left to each server. @throws what is wrong with the text */
export async function describedOn(
  core: SessionCore,
  held: HeldServer,
  request: SeveralRequest,
): Promise<{ readonly statement: Buffer; readonly types: number[] }> {
  const bytes = request.askingTypes()
  const [reply] = await runOnServers(core, [{ held, bytes }], 1)
  const { statement } = reply!
  const count = statement.length > 7 ? statement.readUInt16BE(5) : 0
  const types: number[] = []
  for (let i = 0; i < count; i++) types.push(statement.readUInt32BE(7 + i * 4))
  return { statement, types: types.map((type) => (type < FIRST_USER_OID ? type : 0)) }
}

/** FirstNormalObjectId in src/include/access/transam.h. */
const FIRST_USER_OID = 16_384

const countForm = /^(.*?) ?(\d+)?$/

/** The tag of a statement that ran in parts: its words, and the counts added. */
export function addedTag(tags: readonly string[]): string {
  let words = ''
  let count: bigint | undefined
  for (const tag of tags) {
    const [, text, number] = countForm.exec(tag) ?? []
    words = text ?? words
    if (number !== undefined) count = (count ?? 0n) + BigInt(number)
  }
  return count === undefined ? words : `${words} ${count}`
}

/** RETURNING with a row limit cannot be read in portions. @throws SESSION_PORTAL_SHARDS */
export function checkPortal(request: SeveralRequest, returns: boolean): void {
  if (!request.executes || (returns && request.rowLimit > 0)) {
    throw engineError('SESSION_PORTAL_SHARDS')
  }
}

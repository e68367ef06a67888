/** Answers to batches that the proxy gives itself, in part or in full, and the batch that several servers hear. */
import { type EngineError, engineError } from '../../errors/engine-error.js'
import type { PlannedQuery, PlannedStatement } from '../../plan/plan.js'
import type { ServerConnection } from '../../server/server-connection.js'
import {
  bindCompleteFrame,
  closeCompleteFrame,
  completeFrame,
  noDataFrame,
  noParametersFrame,
  parseCompleteFrame,
} from '../answers.js'
import type { SessionCore } from '../session-core.js'
import type { ClientStatement } from '../state/client-statements.js'
import { type BatchItem, bindFrame, namedFrame, parseFrame, syncFrame } from './batch.js'
import type { Step } from './batch-steps.js'
import { answerLocally } from './local-answer.js'

/** Answers of what comes before Execute, of a statement that gives no rows. */
export function openingFrame(step: Step): Buffer | undefined {
  switch (step.kind) {
    case 'parse':
      step.statement.confirmed = true
      return parseCompleteFrame
    case 'bind':
      return bindCompleteFrame
    case 'describe':
      return step.item.what === 'S' ? Buffer.concat([noParametersFrame, noDataFrame]) : noDataFrame
    default:
      return undefined
  }
}

/** The answer of one step, when the proxy does what its statement asks. */
export function localFrame(
  core: SessionCore,
  step: Step,
  planned: PlannedStatement,
  statement: ClientStatement,
): Buffer | undefined {
  if (step.kind === 'close') {
    step.confirm?.()
    return closeCompleteFrame
  }
  if (step.kind !== 'execute') return openingFrame(step)
  const answer = answerLocally(core, planned, statement.planned.text)
  return completeFrame(answer?.tag ?? 'BEGIN')
}

/** The same unnamed statement for every shard; `parsed`: its Parse is the client's. @throws SESSION_SEVERAL_SHARDS_IN_REQUEST, SESSION_PORTAL_SHARDS */
export function scatterBatch(steps: readonly Step[]): {
  client: ClientStatement
  bytesFor: (server: ServerConnection) => Buffer
  parsed: boolean
} {
  const pieces: Buffer[] = []
  let parsed = false
  for (const step of steps) {
    if (step.kind === 'malformed') throw step.item.error
    if (step.kind === 'duplicate')
      throw engineError('SESSION_STATEMENT_EXISTS', { name: step.item.name })
    if (step.kind === 'error') throw errorOf(step)
    if (step.kind === 'parse') {
      if (parsed) throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
      parsed = true
      step.statement.confirmed = true
    }
    pieces.push(...scatterPieces(step))
  }
  const bind = steps.find((step) => step.kind === 'bind')
  const client = bind?.kind === 'bind' ? bind.statement : undefined
  if (!client) throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
  const { text, parameterTypes } = client.shared
  const bytesFor = (server: ServerConnection): Buffer =>
    Buffer.concat([parseFrame('', text, server.typesHere(parameterTypes)), ...pieces, syncFrame])
  return { client, bytesFor, parsed }
}

/** One Execute at most, of the unnamed portal: what else could be asked of a portal, a server knows. */
export const isPlain = (steps: readonly Step[]): boolean =>
  steps.filter((step) => step.kind === 'execute').length < 2 &&
  steps.every((step) => step.kind !== 'bind' || step.item.portal === '')

export const takesData = (query: PlannedQuery | undefined): boolean => {
  const copy = query?.statements[0]?.effects.copy
  return copy?.direction === 'in' && copy.stdio
}

const errorOf = (step: Extract<Step, { kind: 'error' }>): EngineError =>
  'error' in step
    ? step.error
    : engineError('INTERNAL', { message: 'the error of one server for several' })

function scatterPieces(step: Step): Buffer[] {
  switch (step.kind) {
    case 'bind':
      return [bindFrame(step.item, '')]
    case 'describe':
      return [step.item.what === 'S' ? namedFrame('describe', 'S', '') : step.item.frame]
    case 'execute':
      if (step.item.maxRows > 0) throw engineError('SESSION_PORTAL_SHARDS')
      return [step.item.frame]
    case 'close':
      step.confirm?.()
      return step.item.what === 'P' ? [step.item.frame] : []
    default:
      return []
  }
}

/** The last of these messages executes a COPY FROM STDIN. */
export function gathersCopy(core: SessionCore, items: readonly BatchItem[]): boolean {
  const { access, statements } = core
  const queryOf = (name: string) => {
    const parse = items.findLast((item) => item.kind === 'parse' && item.name === name)
    if (parse?.kind === 'parse') return access.planner.plan(parse.text)
    return statements.get(name)?.planned
  }
  return (
    items.at(-1)?.kind === 'execute' &&
    items.some((item) => item.kind === 'bind' && takesData(queryOf(item.statement)))
  )
}

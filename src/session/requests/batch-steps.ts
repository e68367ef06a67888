/** Messages of a batch, resolved: which shared statement each speaks of, or the error that PostgreSQL would give. */
import { type EngineError, engineError } from '../../errors/engine-error.js'
import type { PlannedQuery } from '../../plan/plan.js'
import { readingOf } from '../../server/settings.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import { channelsOf, isSilentListen, silenceListen } from '../listen/silent-listen.js'
import type { SessionCore } from '../session-core.js'
import type { ClientPortal, ClientStatement } from '../state/client-statements.js'
import { shardOfPortal } from '../state/cursors.js'
import { heardQuery } from '../state/startup-resets.js'
import type { StoredRows } from '../state/stored-rows.js'
import {
  type BatchItem,
  type BindItem,
  type ExecuteItem,
  type MalformedItem,
  type NameItem,
  type ParseItem,
  parseFrame,
} from './batch.js'
import { checkEncoding } from './request-route.js'

export type Step =
  | { readonly kind: 'parse'; readonly item: ParseItem; readonly statement: ClientStatement }
  /** Without a statement: a name that only the pinned server knows. */
  | {
      readonly kind: 'bind'
      readonly item: BindItem
      readonly statement: ClientStatement | undefined
      /** A portal that bears the name already. */
      readonly taken?: Pick<ClientPortal, 'shard' | 'isSeveral'>
    }
  | {
      readonly kind: 'describe'
      readonly item: NameItem
      readonly statement: ClientStatement | undefined
      /** Where the portal stands, when an earlier batch made it. */
      readonly shard?: number
    }
  | {
      readonly kind: 'execute'
      readonly item: ExecuteItem
      /** More rows of a portal. */
      readonly goesOn: boolean
      readonly statement: ClientStatement | undefined
      readonly shard?: number
      /** Rows that wait here: no server is asked. */
      readonly rest?: StoredRows
    }
  /** A Parse under a name that the client uses already. */
  | { readonly kind: 'duplicate'; readonly item: ParseItem; readonly statement: ClientStatement }
  | {
      readonly kind: 'malformed'
      readonly item: MalformedItem
      readonly statement: ClientStatement | undefined
    }
  | {
      readonly kind: 'close'
      readonly item: NameItem
      readonly statement: undefined
      readonly shard?: number
      /** CloseComplete of a statement goes out. */
      readonly confirm?: () => void
    }
  | { readonly kind: 'error'; readonly error: EngineError; readonly statement?: undefined }
  /** The error as a server wrote it. */
  | { readonly kind: 'error'; readonly frame: Buffer; readonly statement?: undefined }

/**
 * Resolves names in order; stops at the first error, as the server would skip the rest. `isFirst`: they begin a request.
 * @throws the error of the first, which no shard need be asked about, whatever has become of the transaction
 */
export function resolveBatch(
  core: SessionCore,
  items: readonly BatchItem[],
  isFirst: boolean,
): Step[] {
  const steps: Step[] = []
  for (const item of items) {
    const step = resolve(core, item)
    steps.push(step)
    if (endsBatch(step)) break
  }
  if (isFirst && core.isSharded) refuseFirst(steps)
  return steps
}

function refuseFirst([first]: readonly Step[]): void {
  if (first?.kind === 'error' && 'error' in first) throw first.error
}

/** The server fails here, and skips what follows. */
const endsBatch = ({ kind }: Step): boolean =>
  kind === 'error' || kind === 'malformed' || kind === 'duplicate'

function resolve(core: SessionCore, item: BatchItem): Step {
  switch (item.kind) {
    case 'parse':
      return resolveParse(core, item)
    case 'bind':
      return resolveBind(core, item)
    case 'execute':
      return resolveExecute(core, item)
    case 'describe':
      return resolveDescribe(core, item)
    case 'malformed':
      return resolveMalformed(core, item)
    case 'close':
      if (item.what === 'S')
        return {
          kind: 'close',
          item,
          statement: undefined,
          confirm: core.statements.close(item.name),
        }
      return closePortal(core, item)
  }
}

function closePortal(core: SessionCore, item: NameItem): Step {
  const shard = shardOfPortal(core, item.name)
  core.statements.portals.delete(item.name)
  core.transaction.cursors.closed(item.name)
  return { kind: 'close', item, statement: undefined, ...standsOn(shard) }
}

const standsOn = (shard: number | undefined) => (shard === undefined ? {} : { shard })

function resolveExecute(core: SessionCore, item: ExecuteItem): Step {
  const portal = core.statements.portals.get(item.portal)
  if (!portal && core.held.size === 0) return noPortal(item.portal)
  if (portal?.isSeveral) return resolvePortion(core, item, portal)
  const goesOn = portal?.hasRun === true
  if (portal) portal.hasRun = true
  const shard = shardOfPortal(core, item.portal)
  return { kind: 'execute', item, statement: portal?.statement, goesOn, ...standsOn(shard) }
}

/** More of what several servers gave. */
function resolvePortion(core: SessionCore, item: ExecuteItem, portal: ClientPortal): Step {
  const { rest, statement } = portal
  const isAborted = core.transaction.phase === 'failed'
  if (rest && !isAborted) return { kind: 'execute', item, statement, goesOn: true, rest }
  return {
    kind: 'error',
    error: engineError(isAborted ? 'SESSION_ABORTED' : 'SESSION_PORTAL_SHARDS'),
  }
}

function resolveParse(core: SessionCore, item: ParseItem): Step {
  const present = item.name === '' ? undefined : core.statements.get(item.name)
  if (present) return { kind: 'duplicate', item, statement: present }
  const planned = core.access.planner.plan(item.text)
  // PostgreSQL's own words: the first alone would run where the statement is not sent as it stands
  if (planned.statements.length > 1) {
    return { kind: 'error', error: engineError('SESSION_SEVERAL_COMMANDS') }
  }
  if (core.access.listen && channelsOf(planned.statements).length > 0) {
    return resolveListen(core, item, silenceListen(planned))
  }
  return addStatement(core, item, planned)
}

function addStatement(core: SessionCore, item: ParseItem, planned: PlannedQuery): Step {
  const heard = heardQuery(planned, core.transaction.startup)
  const statement: ClientStatement = {
    shared: core.access.statements.find(
      heard?.text ?? item.text,
      item.types,
      readingOf(core.transaction.effective),
      executedBy(core, planned),
    ),
    planned,
    generation: core.access.planner.generation,
    confirmed: false,
  }
  core.statements.set(item.name, statement)
  return { kind: 'parse', item, statement }
}

/** What an EXECUTE answers depends on whose it is. */
const executedBy = (core: SessionCore, planned: PlannedQuery): SharedStatement | undefined => {
  const name = planned.statements[0]?.effects.execute?.name
  return name === undefined ? undefined : core.statements.get(name)?.shared
}

/** LISTEN that no server shall run. */
function resolveListen(core: SessionCore, item: ParseItem, planned: PlannedQuery): Step {
  checkEncoding(core, item.frame)
  const { text } = planned
  const frame = parseFrame(item.name, text, item.types)
  return addStatement(core, { ...item, text, frame }, planned)
}

function resolveBind(core: SessionCore, item: BindItem): Step {
  const statement = core.statements.get(item.statement)
  if (!statement) return noStatement(item.statement)
  if (statement) {
    planAgain(core, statement)
    const taken = item.portal === '' ? undefined : takenBy(core, item.portal)
    core.statements.portals.set(item.portal, {
      statement,
      hasRun: false,
      at: core.transaction.logLength,
    })
    if (taken) return { kind: 'bind', item, statement, taken }
  }
  return { kind: 'bind', item, statement }
}

/** A portal of this name, made by Bind or by DECLARE. */
function takenBy(
  { statements, transaction }: SessionCore,
  name: string,
): Pick<ClientPortal, 'shard' | 'isSeveral'> | undefined {
  const shard = transaction.cursors.shardOf(name)
  return shard === undefined ? statements.portals.get(name) : { shard }
}

function resolveMalformed(core: SessionCore, item: MalformedItem): Step {
  const { bind } = item
  const statement = bind && core.statements.get(bind.statement)
  if (bind && !statement) return noStatement(bind.statement)
  return { kind: 'malformed', item, statement }
}

/** A statement prepared before the schema or the sharding changed goes where it belongs now. */
function planAgain(core: SessionCore, statement: ClientStatement): void {
  const { planner } = core.access
  if (statement.generation === planner.generation) return
  if (statement.planned.statements.some(isSilentListen)) return
  statement.planned = planner.plan(statement.planned.text)
  statement.generation = planner.generation
}

function resolveDescribe(core: SessionCore, item: NameItem): Step {
  if (item.what === 'P') {
    const statement = core.statements.portals.get(item.name)?.statement
    if (!statement && core.held.size === 0) return noPortal(item.name)
    return { kind: 'describe', item, statement, ...standsOn(shardOfPortal(core, item.name)) }
  }
  const statement = core.statements.get(item.name)
  if (!statement) return noStatement(item.name)
  if (statement) planAgain(core, statement)
  return { kind: 'describe', item, statement }
}

const noStatement = (name: string): Step => ({
  kind: 'error',
  error:
    name === '' ? engineError('SESSION_NO_UNNAMED') : engineError('SESSION_NO_STATEMENT', { name }),
})

const noPortal = (name: string): Step => ({
  kind: 'error',
  error: engineError('SESSION_NO_PORTAL', { name }),
})

/** The statement that every step of a batch speaks of, when it is only one. */
export function onlyStatement(steps: Step[]): ClientStatement | undefined {
  let only: ClientStatement | undefined
  for (const step of steps) {
    if (endsBatch(step)) return undefined
    if (!step.statement) continue
    if (only && only !== step.statement) return undefined
    only = step.statement
  }
  return only
}

const none: readonly string[] = []

/** Channels that statements of the batch listen to, where the proxy listens for clients. */
export function channelsBound(core: SessionCore, steps: readonly Step[]): readonly string[] {
  if (!core.access.listen) return none
  let channels: string[] | undefined
  for (const step of steps) {
    const statement = step.kind === 'bind' ? step.statement?.planned.statements[0] : undefined
    const channel = statement?.effects.listen?.channel
    if (channel !== undefined) channels = [...(channels ?? none), channel]
  }
  return channels ?? none
}

/** Statement pooling: one statement a request, and no transaction. */
export function refuseTransactions(steps: readonly Step[]): void {
  const bound = steps.flatMap((step) =>
    step.kind === 'bind' ? (step.statement?.planned.statements ?? []) : [],
  )
  if (bound.length > 1 || bound.some((statement) => statement.effects.transaction)) {
    throw engineError('SESSION_STATEMENT_MODE')
  }
}

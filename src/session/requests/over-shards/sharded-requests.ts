/**
 * Requests that concern more than one server: the end of a transaction, SET and savepoints inside one, reads of
 * several shards, COPY into several shards.
 */

import { engineError, toEngineError } from '../../../errors/engine-error.js'
import { FanOut, type FanOutOutcome, type FanOutPart } from '../../../executor/fan-out.js'
import type { TransactionEffect } from '../../../plan/effects.js'
import type { Plan, PlannedStatement } from '../../../plan/plan.js'
import { queryFrame, type ServerConnection } from '../../../server/server-connection.js'
import { listShards } from '../../../sharding/shard-set.js'
import { closeCompleteFrame, completeFrame, errorFrame, noticeFrame } from '../../answers.js'
import type { SessionCore } from '../../session-core.js'
import {
  applyCompleted,
  type CompletedStatement,
  completedOf,
  isNeutral,
} from '../../state/apply-effects.js'
import { shardOfPortal } from '../../state/cursors.js'
import { deadlockParty } from '../../state/deadlock-party.js'
import type { HeldServer } from '../../state/held-servers.js'
import { lendNames } from '../../state/lent-names.js'
import { afterRequest } from '../after-request.js'
import { checkShards, refusal, requestRole } from '../request-route.js'
import { commitOverShards } from './commit-over-shards.js'
import { inOurTransaction, plainBegin } from './in-our-transaction.js'

type TransactionEnd = Extract<TransactionEffect, { kind: 'commit' | 'rollback' }>

/** What a scattered request sends to each server, behind the prelude. */
export interface ScatterRequest {
  /** Frames up to one ReadyForQuery, as one server is told them. */
  bytesFor(server: ServerConnection): Buffer
  /** The client did not send the Parse that stands first, and shall not see its ParseComplete. */
  readonly hidesParse: boolean
}

export class ShardedRequests {
  readonly #core: SessionCore

  constructor(core: SessionCore) {
    this.#core = core
    const { deadlocks } = core.access
    if (!deadlocks) return
    const party = deadlockParty(core)
    deadlocks.enter(party)
    core.held.onClosed = () => deadlocks.leave(party)
  }

  isNeutral(statement: PlannedStatement): boolean {
    return isNeutral(statement)
  }

  /**
   * Runs a statement that controls the session, when it is one: transactions, savepoints, SET, SHOW and their kin.
   * False: it is not, and goes where its tables are.
   */
  runControl(statement: PlannedStatement, text: string, frame: Buffer): boolean {
    const core = this.#core
    const { transaction } = core
    const effect = statement.effects.transaction
    const ends = effect?.kind === 'commit' || effect?.kind === 'rollback'
    if (transaction.phase === 'failed' && !ends && effect?.kind !== 'rollback_to') {
      throw engineError('SESSION_ABORTED')
    }
    if (effect && transaction.isOurs && !inOurTransaction(core, statement, text)) return true
    if (ends) this.#endTransaction(statement, effect, text, frame)
    else if (effect?.kind === 'begin') this.#beginAgain(statement, text, frame)
    else if (effect?.kind === 'two_phase') throw engineError('SESSION_TWO_PHASE_BY_CLIENT')
    else if (effect) this.#savepoint(statement, text, frame)
    else if (
      statement.kind === 'set' ||
      statement.kind === 'reset' ||
      statement.kind === 'discard'
    ) {
      this.#everywhere(statement, text, frame)
    } else if (closesAll(statement) && core.held.size > 1) {
      this.#onEach(core.held.all(), statement, text, frame)
    } else if (isSessionBound(statement)) {
      this.#relay(this.#shardOfPrepared(statement), 'primary', statement, text, frame)
    } else return false
    return true
  }

  /** PREPARE and EXECUTE stay on one shard, which must be the one of the statement's tables. @throws the plan's refusal */
  #shardOfPrepared(statement: PlannedStatement): number {
    const core = this.#core
    const bound = core.held.first?.shard ?? 0
    const cursor = statement.effects.cursor?.name
    if (typeof cursor === 'string') return shardOfPortal(core, cursor) ?? bound
    const name = statement.effects.execute?.name
    const known = name === undefined ? undefined : core.statements.get(name)?.shared
    const inner = known
      ? core.access.planner.plan(known.text).statements[0]
      : statement.effects.prepare && statement
    const plan = inner?.route(undefined, core.routeContext(known?.parameterTypes))
    if (!plan || plan.anyShard) return bound
    if (plan.how === 'refuse') throw refusal(plan, core)
    if (plan.how !== 'relay') throw engineError('SESSION_SQL_EXECUTE')
    return plan.target.kind === 'some' ? (plan.target.shards[0] ?? bound) : bound
  }

  /** BEGIN that could not be answered here: inside a transaction, or while a server is pinned. */
  #beginAgain(statement: PlannedStatement, text: string, frame: Buffer): void {
    const core = this.#core
    if (core.transaction.isExplicit) {
      const word = plainBegin.exec(text.slice(statement.start, statement.end))?.[1]
      if (word === undefined) throw engineError('SESSION_BEGIN_MODES')
      const tag = /^start/i.test(word) ? 'START TRANSACTION' : 'BEGIN'
      const warning = noticeFrame('25001', 'WARNING', 'there is already a transaction in progress')
      core.answer(Buffer.concat([warning, completeFrame(tag)]))
    } else this.#relay(core.held.first?.shard ?? 0, 'primary', statement, text, frame)
  }

  #endTransaction(
    statement: PlannedStatement,
    { kind, chain }: TransactionEnd,
    text: string,
    frame: Buffer,
  ): void {
    const core = this.#core
    const commit = kind === 'commit'
    const { transaction } = core
    const joined = core.held.all().filter((held) => held.joined)
    if (!transaction.isExplicit) {
      if (chain)
        throw engineError('SESSION_ONLY_IN_BLOCK', { what: `${kind.toUpperCase()} AND CHAIN` })
      const warning = noticeFrame('25P01', 'WARNING', 'there is no transaction in progress')
      return core.answer(Buffer.concat([warning, completeFrame(commit ? 'COMMIT' : 'ROLLBACK')]))
    }
    if (joined.length === 0) {
      const tag = commit && transaction.phase !== 'failed' ? 'COMMIT' : 'ROLLBACK'
      this.#ended(tag === 'COMMIT', chain)
      return core.answer(completeFrame(tag))
    }
    if (joined.length === 1 && !transaction.failedByUs) {
      return this.#relay((joined[0] as HeldServer).shard, 'primary', statement, text, frame)
    }
    if (!commit || transaction.phase === 'failed') return this.#endAll(joined, 'ROLLBACK', chain)
    const writers = joined.filter((held) => held.wrote)
    if (writers.length < 2) {
      // the writer's answer is the outcome; the others have nothing that could fail to commit
      const lead = writers[0] ?? (joined[0] as HeldServer)
      return this.#endAll([lead, ...joined.filter((held) => held !== lead)], 'COMMIT', chain)
    }
    void commitOverShards(core, joined).then(
      () => {
        this.#ended(true, chain)
        core.figures.transactions++
        core.answer(completeFrame('COMMIT'))
      },
      (error) => {
        transaction.end(false)
        core.fail(toEngineError(error))
      },
    )
  }

  /** The transaction is over on every server. What AND CHAIN begins is as after BEGIN: its first statement says where. */
  #ended(committed: boolean, chain: boolean): void {
    const { held, statements, transaction } = this.#core
    transaction.end(committed, chain)
    if (!chain) return
    transaction.phase = 'pending'
    statements.portals.clear()
    held.releaseAll()
  }

  #endAll(helds: HeldServer[], verb: 'COMMIT' | 'ROLLBACK', chain: boolean): void {
    const core = this.#core
    this.#fanOut(
      helds,
      () => queryFrame(verb),
      'same',
      (outcome) => {
        const committed = outcome.tag?.startsWith('COMMIT') === true && !outcome.error
        const settings = committed ? core.transaction.settings : core.transaction.base
        for (const { server } of helds) {
          server.settings = settings
          if (!committed) server.traffic.rollbacks++
        }
        this.#ended(committed, chain && !outcome.error)
        core.figures.transactions++
        this.#finish(outcome)
      },
    )
  }

  #savepoint(statement: PlannedStatement, text: string, frame: Buffer): void {
    const core = this.#core
    const { transaction } = core
    const effect = statement.effects.transaction
    const joined = core.held.all().filter((held) => held.joined)
    if (joined.length > 0) return this.#onEach(joined, statement, text, frame)
    if (!transaction.isExplicit) {
      return this.#relay(core.nextShard(), 'primary', statement, text, frame)
    }
    if (effect?.kind === 'savepoint') transaction.savepoint(effect.name)
    else if (effect && 'name' in effect) {
      if (!transaction.hasSavepoint(effect.name)) {
        throw engineError('SESSION_NO_SAVEPOINT', { name: effect.name })
      }
      if (effect.kind === 'release') transaction.release(effect.name)
      else transaction.rollbackTo(effect.name)
    }
    core.answer(
      completeFrame(
        effect?.kind === 'rollback_to' ? 'ROLLBACK' : (effect?.kind ?? '').toUpperCase(),
      ),
    )
  }

  /** On each of these servers, and noted once: who joins later hears a savepoint as often as it stands in the log. */
  #onEach(helds: HeldServer[], statement: PlannedStatement, text: string, frame: Buffer): void {
    const core = this.#core
    const { transaction } = core
    const owned = Buffer.from(frame)
    const completed = completedOf(statement, text, transaction.startup)
    this.#fanOut(
      helds,
      () => owned,
      'same',
      (outcome) => {
        const [lead] = helds
        if (!outcome.error && lead) {
          applyCompleted(core, lead, completed, '')
          const undoes = completed.effects.transaction?.kind === 'rollback_to'
          if (undoes) for (const { server } of helds) server.settings = transaction.settings
        }
        this.#finish(outcome)
      },
    )
  }

  /** SET and RESET: on every server held, else on any; the others hear of it before their next use. */
  #everywhere(statement: PlannedStatement, text: string, frame: Buffer): void {
    const core = this.#core
    const all = core.held.all()
    if (all.length < 2) {
      const shard = all[0]?.shard ?? core.nextShard()
      return this.#relay(shard, 'primary', statement, text, frame)
    }
    const completed = completedOf(statement, text, core.transaction.startup)
    const bytes = this.#heard(completed, frame)
    this.#fanOut(
      all,
      () => bytes,
      'same',
      (outcome) => {
        if (!outcome.error) {
          const before = core.transaction.replay.length
          for (const held of all) {
            if (core.transaction.replay.length === before) applyCompleted(core, held, completed, '')
            held.server.settings = core.transaction.settings
          }
        }
        const tag = completed.tagInstead
        this.#finish(tag === undefined || outcome.tag === undefined ? outcome : { ...outcome, tag })
      },
    )
  }

  #relay(
    shard: number,
    role: 'primary' | 'any',
    statement: PlannedStatement,
    text: string,
    frame: Buffer,
  ): void {
    const core = this.#core
    const completed = completedOf(statement, text, core.transaction.startup)
    const bytes = this.#heard(completed, frame)
    core.withShard(shard, role, (held) => {
      core.running?.statements.push(completed)
      lendNames(core, held, [statement])
      held.server.unnamed = undefined
      const { pieces, expectations } = afterRequest(core, held, [statement])
      const own = { kind: 'query', holdsReady: pieces.length > 0 } as const
      core.send(held, [bytes, ...pieces], [own, ...expectations], 1 + pieces.length)
    })
  }

  #heard(completed: CompletedStatement, frame: Buffer): Buffer {
    return completed.tagInstead === undefined ? Buffer.from(frame) : queryFrame(completed.sql)
  }

  /** A read of several shards whose answer is the concatenation of theirs. */
  scatter(statement: PlannedStatement, plan: Plan, text: string, request?: ScatterRequest): void {
    const core = this.#core
    const shards = listShards(plan.target, core.access.planner.shardCount)
    checkShards(core, shards, !statement.isRead)
    const query = queryFrame(text.slice(statement.start, statement.end))
    void core.held.acquireAll(shards, requestRole(core, [statement], [plan])).then(
      (helds) =>
        this.#fanOut(
          helds,
          ({ server }) => request?.bytesFor(server) ?? query,
          'rows',
          (outcome) => {
            for (const held of helds) {
              noteWork(held, statement)
              if (request) held.server.unnamed = undefined
            }
            if (!outcome.error) core.figures.queries++
            this.#finish(outcome)
          },
          request?.hidesParse,
          hasCopyHeader(statement),
        ),
      (error) =>
        core.fail(core.cancelled ? engineError('SESSION_CANCELLED') : toEngineError(error)),
    )
  }

  #fanOut(
    helds: HeldServer[],
    bytesOf: (held: HeldServer) => Buffer,
    mode: 'rows' | 'same',
    done: (outcome: FanOutOutcome) => void,
    hidesParse = false,
    copyHeader = false,
  ): void {
    const core = this.#core
    const parts: FanOutPart[] = helds.map((held) => {
      const prelude = core.held.prelude(held, core.transaction)
      return {
        shard: held.shard,
        server: held.server,
        bytes: Buffer.concat([...prelude.bytes, bytesOf(held)]),
        preludeReadies: prelude.syncs,
        preludeDone: () => {
          for (const expectation of prelude.expectations) expectation.done?.()
        },
      }
    })
    const fanOut = new FanOut(parts, core.output, {
      mode,
      hidesParse,
      copyHeader,
      listens: () => core.held.pins.has('listen'),
      parameterStatus: (buffer, start, end) => core.noteStatus(buffer, start, end),
      failed: () => {
        if (mode === 'rows') core.held.cancel()
      },
      done: (outcome) => {
        for (const held of helds) {
          if (outcome.lost.includes(held.shard)) core.held.discard(held, 'connection lost')
          else held.server.receiver = held.relay
        }
        done(outcome)
      },
    })
    core.fanOut = fanOut
    fanOut.start()
  }

  /** The client's CommandComplete or error, then ReadyForQuery. */
  #finish(outcome: FanOutOutcome): void {
    const core = this.#core
    if (outcome.error) {
      core.figures.errors++
      if (core.transaction.isExplicit) core.transaction.fail()
      core.statements.dropUnconfirmed()
      if (core.running) core.running.failed = true
      const isOurLimit = outcome.error.sqlstate === '57014' && core.timedOut !== undefined
      core.output.append(errorFrame((isOurLimit && core.timedOut) || outcome.error, 'ERROR'))
    } else {
      if (outcome.tag !== undefined) core.conclude(completeFrame(outcome.tag))
      for (let i = 0; i < outcome.closes; i++) core.output.append(closeCompleteFrame)
    }
    core.complete()
  }

  copyIn(statement: PlannedStatement, plan: Plan, text: string): void {
    const core = this.#core
    core.hooks.shardedCopy(statement, plan, text)
  }
}

/** A server has run a statement that looks at rows, or changes them. */
export function noteWork(held: HeldServer, statement: Pick<PlannedStatement, 'isRead'>): void {
  held.worked = true
  if (!statement.isRead) held.wrote = true
}

/** COPY TO whose answer begins with a line of names. */
const hasCopyHeader = (statement: PlannedStatement): boolean =>
  statement.effects.copy?.options.some(
    ({ name, value }) => name === 'header' && !/^(?:false|off|0|no)$/i.test(value ?? 'on'),
  ) === true

const closesAll = ({ effects }: PlannedStatement): boolean =>
  effects.cursor?.verb === 'close' && effects.cursor.name === null

/** Runs on the server that the client has, because its object lives there. */
const isSessionBound = ({ kind }: PlannedStatement): boolean =>
  ['fetch', 'close', 'prepare', 'execute', 'deallocate'].includes(kind)

/** Turns resolved steps into the frames for one server and the replies that it will owe. */
import { engineError } from '../../errors/engine-error.js'
import type { Expectation } from '../../executor/relay.js'
import type { PlannedStatement } from '../../plan/plan.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import { closeCompleteFrame, errorFrame, parseCompleteFrame } from '../answers.js'
import type { SessionCore } from '../session-core.js'
import { type CompletedStatement, completedOf } from '../state/apply-effects.js'
import type { ClientStatement } from '../state/client-statements.js'
import type { HeldServer } from '../state/held-servers.js'
import { lend, lendName, nameIn } from '../state/lent-names.js'
import { needsPrelude } from '../state/prelude.js'
import { afterRequest } from './after-request.js'
import {
  bindFrame,
  flushFrame,
  namedFrame,
  type ParseItem,
  parseFrame,
  syncFrame,
} from './batch.js'
import type { Step } from './batch-steps.js'
import { asRead, canPrepare, isReadAnew, type Preparation, prepareAs } from './prepare-as-read.js'

/** No server has a statement of this name: describing it makes the server fail as the client's request must. */
const NO_SUCH_STATEMENT = '__pgshard_no_such_statement'
const FAILED = 0x45

const moreRows: CompletedStatement = {
  effects: { pins: [], taints: false, changesSchema: false },
  sql: '',
  isRead: true,
  isNeutral: false,
}

export class BatchBuilder {
  readonly #core: SessionCore
  readonly #held: HeldServer
  readonly #pieces: Buffer[] = []
  readonly #expectations: Expectation[] = []
  /** Statements whose Parse stands earlier in this request, perhaps behind a Flush. */
  readonly #preparing: Set<SharedStatement>
  #unnamed: SharedStatement | undefined
  #parsesUnnamed = false
  /** Names of SQL that the server was told, or relieved of. */
  readonly #lent = new Set<string>()
  readonly #executed: PlannedStatement[] = []

  constructor(core: SessionCore, held: HeldServer) {
    this.#core = core
    this.#held = held
    if (!held.server.isUnsynced) held.preparing.clear()
    this.#preparing = held.preparing
    this.#unnamed = needsPrelude(held, core.transaction) ? undefined : held.server.unnamed
  }

  add(step: Step): void {
    if (step.kind !== 'close') this.#lend(step.statement)
    switch (step.kind) {
      case 'parse':
        return this.#parse(step.item.name, step.statement, step.item.frame)
      case 'duplicate':
        return this.#duplicate(step)
      case 'bind':
        return this.#bind(step)
      case 'describe':
        return this.#describe(step)
      case 'execute':
        this.#executed.push(...(step.statement?.planned.statements ?? []))
        this.#core.running?.statements.push(
          step.goesOn ? moreRows : this.#completed(step.statement),
        )
        return this.#put(step.item.frame, { kind: 'execute' })
      case 'close':
        if (step.item.what === 'P') return this.#put(step.item.frame, { kind: 'close' })
        this.#expectations.push({ kind: 'insert', bytes: closeCompleteFrame, done: step.confirm })
        return
      case 'malformed':
        return this.#malformed(step)
      case 'error':
        return this.#put(namedFrame('describe', 'S', NO_SUCH_STATEMENT), {
          kind: 'describe',
          planted: 'frame' in step ? step.frame : errorFrame(step.error, 'ERROR'),
        })
    }
  }

  /** `syncs`: how many ReadyForQuery will come. */
  finish(end: 'sync' | 'flush'): Preparation {
    const pieces = this.#pieces
    const expectations = this.#expectations
    if (end === 'flush') {
      if (pieces.length > 0) pieces.push(flushFrame)
      return { pieces, expectations, syncs: 0 }
    }
    const after = afterRequest(this.#core, this.#held, this.#executed)
    this.#put(syncFrame, { kind: 'sync', holdsReady: after.pieces.length > 0 })
    pieces.push(...after.pieces)
    expectations.push(...after.expectations)
    return { pieces, expectations, syncs: 1 + after.pieces.length }
  }

  #put(bytes: Buffer, expectation: Expectation): void {
    this.#pieces.push(bytes)
    this.#expectations.push(expectation)
  }

  #parseFrameOf(shared: SharedStatement, name: string): Buffer {
    return parseFrame(name, shared.text, this.#held.server.typesHere(shared.parameterTypes))
  }

  #parse(name: string, statement: ClientStatement, frame: Buffer): void {
    const { shared } = statement
    const confirm = () => {
      statement.confirmed = true
    }
    if (name === '') {
      this.#parsesUnnamed = true
      this.#unnamed = shared
      const types = this.#held.server.typesHere(shared.parameterTypes)
      const isOwn = shared.text === statement.planned.text && types === shared.parameterTypes
      this.#put(isOwn ? frame : parseFrame('', shared.text, types), {
        kind: 'parse',
        done: () => {
          statement.confirmed = true
          this.#held.server.unnamed = shared
        },
      })
      return
    }
    if (this.#isPrepared(statement)) {
      this.#expectations.push({ kind: 'insert', bytes: parseCompleteFrame, done: confirm })
      return
    }
    this.#preparing.add(shared)
    this.#put(this.#parseFrameOf(shared, shared.serverName), {
      kind: 'parse',
      statement: shared,
      done: confirm,
    })
  }

  /** In a failed transaction only its end may be spared its Parse: everything else must get the server's 25P02. */
  #isPrepared(statement: ClientStatement): boolean {
    const { shared } = statement
    if (this.#preparing.has(shared)) return true
    if (!this.#held.server.hasPrepared(shared)) return false
    if (this.#held.server.status !== FAILED) return true
    return statement.planned.statements[0]?.effects.transaction !== undefined
  }

  /** The name under which the server knows the statement, after telling it if need be. */
  #nameOf(name: string, statement: ClientStatement): string {
    const { shared } = statement
    if (shared.isSql) {
      this.#lendShared(shared.serverName, shared)
      return shared.serverName
    }
    if (name === '' && this.#unnamed !== shared && this.#isReadAnew(shared)) {
      this.#prepareFirst(shared)
      return shared.serverName
    }
    if (name === '') {
      if (this.#unnamed !== shared) {
        this.#unnamed = shared
        this.#put(this.#parseFrameOf(shared, ''), {
          kind: 'parse',
          skip: true,
          done: () => {
            this.#held.server.unnamed = shared
          },
        })
      }
      return ''
    }
    if (this.#held.server.hasPrepared(shared)) this.#held.server.traffic.preparedHits++
    else if (this.#isReadAnew(shared)) this.#prepareFirst(shared)
    else if (!this.#preparing.has(shared) && !this.#held.server.hasPrepared(shared)) {
      this.#preparing.add(shared)
      this.#put(this.#parseFrameOf(shared, shared.serverName), {
        kind: 'parse',
        skip: true,
        statement: shared,
      })
    }
    return shared.serverName
  }

  #isReadAnew(shared: SharedStatement): boolean {
    if (this.#preparing.has(shared) || this.#held.server.hasPrepared(shared)) return false
    return canPrepare(this.#held) && isReadAnew(shared, this.#core.transaction)
  }

  #prepareFirst(shared: SharedStatement): void {
    this.#preparing.add(shared)
    const preparing = asRead(shared, this.#core.transaction, prepareAs(shared.serverName, shared))
    this.#forgetUnnamed()
    this.#core.send(this.#held, preparing.pieces, preparing.expectations, preparing.syncs)
  }

  /** A Query that goes first takes what the server had; what the batch parses comes behind it. */
  #forgetUnnamed(): void {
    if (this.#parsesUnnamed) return
    this.#unnamed = undefined
    this.#held.server.unnamed = undefined
  }

  /** What the statement speaks of by a name of SQL. */
  #lend(statement: ClientStatement | undefined): void {
    const name = statement?.planned.statements.map(nameIn)[0]
    if (name !== undefined) this.#lendName(name)
  }

  #lendName(name: string): void {
    if (this.#lent.has(name)) return
    this.#lent.add(name)
    this.#forgetUnnamed()
    lendName(this.#core, this.#held, name)
  }

  #lendShared(name: string, shared: SharedStatement): void {
    if (this.#lent.has(name)) return
    this.#lent.add(name)
    this.#forgetUnnamed()
    lend(this.#core, this.#held, name, shared)
  }

  /** The server looks at the text first, and only then finds that the name is taken. */
  #duplicate({ item, statement }: Extract<Step, { kind: 'duplicate' }>): void {
    const { shared } = statement
    if (shared.isSql) return this.#duplicateOfSql(item, shared)
    const isKnown = this.#preparing.has(shared) || this.#held.server.hasPrepared(shared)
    if (!isKnown && this.#held.server.status === FAILED) {
      const error = engineError('SESSION_STATEMENT_EXISTS', { name: item.name })
      return this.add({ kind: 'error', error })
    }
    const name = this.#nameOf(item.name, statement)
    this.#put(parseFrame(name, item.text, this.#held.server.typesHere(item.types)), {
      kind: 'describe',
    })
  }

  /** A failed transaction takes no PREPARE, and needs none: nothing of SQL ends it under a name. */
  #cannotLend(shared: SharedStatement): boolean {
    const { status, names } = this.#held.server
    return shared.isSql && status === FAILED && names.get(shared.serverName) !== shared
  }

  #duplicateOfSql(item: ParseItem, shared: SharedStatement): void {
    if (this.#cannotLend(shared))
      return this.add({ kind: 'error', error: engineError('SESSION_ABORTED') })
    this.#lendName(item.name)
    this.#put(item.frame, { kind: 'describe' })
  }

  #bind(step: Extract<Step, { kind: 'bind' }>): void {
    const { item, statement } = step
    const portal = this.#core.statements.portals.get(item.portal)
    if (portal) portal.shard = this.#held.shard
    if (statement && this.#cannotLend(statement.shared))
      return this.add({ kind: 'error', error: engineError('SESSION_ABORTED') })
    const name = statement ? this.#nameOf(item.statement, statement) : item.statement
    this.#put(name === item.statement ? item.frame : bindFrame(item, name), { kind: 'bind' })
  }

  #malformed({ item, statement }: Extract<Step, { kind: 'malformed' }>): void {
    const { bind } = item
    if (!bind || !statement) return this.#put(item.frame, { kind: 'describe' })
    const name = this.#nameOf(bind.statement, statement)
    this.#put(bindFrame(bind, name), { kind: 'describe' })
  }

  #describe(step: Extract<Step, { kind: 'describe' }>): void {
    const { item, statement } = step
    if (!statement) return this.#put(item.frame, { kind: 'describe' })
    const expectation = { kind: 'describe', statement: statement.shared } as const
    if (item.what === 'P') return this.#put(item.frame, expectation)
    const name = this.#nameOf(item.name, statement)
    this.#put(namedFrame('describe', 'S', name), expectation)
  }

  #completed(statement: ClientStatement | undefined): CompletedStatement {
    const planned = statement?.planned.statements[0]
    if (planned && statement)
      return completedOf(planned, statement.planned.text, this.#core.transaction.startup)
    return {
      effects: { pins: [], taints: planned !== undefined, changesSchema: false },
      sql: '',
      isRead: false,
      isNeutral: false,
    }
  }
}

/** What PREPARE, EXECUTE and DEALLOCATE of SQL have done, once they are complete. */
import type { Effects } from '../../plan/effects.js'
import { readingOf } from '../../server/settings.js'
import type { DatabaseAccess } from '../environment.js'
import type { ClientStatement, ClientStatements } from './client-statements.js'
import type { HeldServer } from './held-servers.js'
import type { Transaction } from './transaction.js'

interface NamesTarget {
  readonly statements: ClientStatements
  readonly access: DatabaseAccess
  readonly transaction: Transaction
}

interface NamingStatement {
  readonly effects: Effects
  readonly sql: string
  /** With PREPARE: the statement in it. */
  readonly body?: string
}

/** What the client and the server know after PREPARE and DEALLOCATE. */
export function applyNames(
  target: NamesTarget,
  held: HeldServer,
  { effects, sql, body }: NamingStatement,
): void {
  const { statements, access, transaction } = target
  const { server } = held
  if (effects.prepare && body !== undefined) {
    const { name } = effects.prepare
    const shared = access.statements.findSql(name, sql, readingOf(transaction.effective))
    statements.set(name, {
      shared,
      planned: access.planner.plan(body),
      generation: access.planner.generation,
      confirmed: true,
    })
    server.names.set(name, shared)
  }
  if (!effects.deallocate) return
  const { name } = effects.deallocate
  if (name === null) {
    statements.deallocateAll()
    server.forgetStatements()
  } else {
    statements.delete(name)
    server.names.delete(name)
  }
}

/** An EXECUTE does what its statement does. */
export function executedEffects(
  { effects }: NamingStatement,
  executed: ClientStatement | undefined,
): Effects {
  const inner = executed?.planned.statements[0]?.effects
  if (!inner) return { ...effects, taints: true }
  const pins = [...effects.pins, ...inner.pins]
  return { ...inner, ...effects, pins, taints: effects.taints || inner.taints }
}

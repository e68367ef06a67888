/**
 * SQL and the protocol have one set of statement names for each client. Servers know the statements of the protocol under
 * shared names; where SQL speaks of one (PREPARE, EXECUTE, DEALLOCATE), the server learns it under the client's own
 * name before the request, or forgets what another client left under it. So the answer is the server's own.
 */
import type { Expectation } from '../../executor/relay.js'
import type { PlannedStatement } from '../../plan/plan.js'
import { queryFrame } from '../../server/server-connection.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import { namedFrame, syncFrame } from '../requests/batch.js'
import { asRead, canPrepare, type Preparation, prepareAs } from '../requests/prepare-as-read.js'
import type { SessionCore } from '../session-core.js'
import type { HeldServer } from './held-servers.js'

/** The name of a prepared statement that a statement speaks of. */
export const nameIn = ({ effects }: PlannedStatement): string | undefined =>
  effects.execute?.name ?? effects.prepare?.name ?? effects.deallocate?.name ?? undefined

/** Sees to it that the server knows, of the names that `statements` speak of, just those that the client has. */
export function lendNames(
  core: SessionCore,
  held: HeldServer,
  statements: readonly PlannedStatement[],
): void {
  for (const statement of statements) {
    const name = nameIn(statement)
    if (name !== undefined) lendName(core, held, name)
  }
}

export function lendName(
  core: SessionCore,
  held: HeldServer,
  name: string,
  lent: ReadonlySet<string> = new Set(),
): void {
  const statement = core.statements.get(name)
  // an EXECUTE that was prepared speaks of another
  const inner = statement?.planned.statements.map(nameIn)[0]
  if (inner !== undefined && !lent.has(inner)) lendName(core, held, inner, new Set([...lent, name]))
  lend(core, held, name, statement?.shared)
}

/** The server knows `wanted` under `name`, or nothing when there is none. */
export function lend(
  core: SessionCore,
  held: HeldServer,
  name: string,
  wanted: SharedStatement | undefined,
): void {
  const { names } = held.server
  const present = names.get(name)
  if (wanted === present || !canPrepare(held)) return
  if (present) {
    names.delete(name)
    send(core, held, closing(name))
  }
  if (!wanted) return
  const oldest = names.makeRoom()
  if (oldest !== undefined) send(core, held, closing(oldest))
  const known = () => names.set(name, wanted)
  const defining = wanted.isSql ? defineBySql(wanted, known) : prepareAs(name, wanted, known)
  send(core, held, asRead(wanted, core.transaction, defining))
}

const send = (core: SessionCore, held: HeldServer, { pieces, expectations, syncs }: Preparation) =>
  core.send(held, pieces, expectations, syncs)

const closing = (name: string): Preparation => ({
  pieces: [namedFrame('close', 'S', name), syncFrame],
  expectations: [
    { kind: 'close', skip: true },
    { kind: 'sync', skip: true },
  ],
  syncs: 1,
})

function defineBySql(shared: SharedStatement, done: () => void): Preparation {
  const expectation: Expectation = { kind: 'query', skip: true, done }
  return { pieces: [queryFrame(shared.text)], expectations: [expectation], syncs: 1 }
}

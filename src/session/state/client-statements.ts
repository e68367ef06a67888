/** A client's prepared statements and portals by the client's own names. What they are on servers is a SharedStatement. */

import type { PlannedQuery } from '../../plan/plan.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import type { StoredRows } from './stored-rows.js'

export interface ClientStatement {
  readonly shared: SharedStatement
  planned: PlannedQuery
  /** Of the planner that made `planned`. */
  generation: number | undefined
  /** ParseComplete has come; until then an error takes the statement away again. */
  confirmed: boolean
}

export interface ClientPortal {
  readonly statement: ClientStatement
  /** It was executed: what its statement does is done with its first rows. */
  hasRun: boolean
  /** The shard on which it was bound. */
  shard?: number
  /** Length of the transaction's log when it was bound. */
  at: number
  /** It ran on several servers, none of which knows it any more. */
  isSeveral?: boolean
  /** What the client has not asked for yet of the rows that they gave. */
  rest?: StoredRows
}

/** Finds a client's names by those on servers. */
export interface ServerNames {
  nameOf(serverName: string): string | undefined
}

export class ClientStatements implements ServerNames {
  readonly #named = new Map<string, ClientStatement>()
  readonly portals = new Map<string, ClientPortal>()
  #unnamed: ClientStatement | undefined
  #closed: (readonly [string, ClientStatement])[] = []

  get size(): number {
    return this.#named.size
  }

  /** Of their texts. */
  get bytes(): number {
    return [...this.#named.values()].reduce((sum, { shared }) => sum + shared.text.length, 0)
  }

  get(name: string): ClientStatement | undefined {
    return name === '' ? this.#unnamed : this.#named.get(name)
  }

  nameOf(serverName: string): string | undefined {
    if (this.#unnamed?.shared.serverName === serverName) return ''
    for (const [name, { shared }] of [...this.#named, ...this.#closed])
      if (shared.serverName === serverName) return name
    return undefined
  }

  set(name: string, statement: ClientStatement): void {
    if (name === '') this.#unnamed = statement
    else this.#named.set(name, statement)
  }

  delete(name: string): boolean {
    if (name !== '') return this.#named.delete(name)
    this.#unnamed = undefined
    return true
  }

  /** ROLLBACK TO has cut the log to `length`: portals made since are no more. */
  rolledBackTo(length: number): void {
    for (const [name, portal] of this.portals) {
      if (portal.at >= length) this.portals.delete(name)
      // nobody knows here what such a portal would still give
      else delete portal.rest
    }
  }

  released(length: number): void {
    for (const portal of this.portals.values()) portal.at = Math.min(portal.at, length)
  }

  /** Close: undone by `dropUnconfirmed` until what it returns is called, because a server that failed before skips it. */
  close(name: string): () => void {
    const statement = this.get(name)
    if (!statement) return () => undefined
    this.delete(name)
    const closed: readonly [string, ClientStatement] = [name, statement]
    this.#closed.push(closed)
    return () => {
      const at = this.#closed.indexOf(closed)
      if (at >= 0) this.#closed.splice(at, 1)
    }
  }

  /** A simple query drops the unnamed statement and the unnamed portal. */
  dropUnnamed(): void {
    this.#unnamed = undefined
    if (this.portals.size > 0) this.portals.delete('')
  }

  /** After an error: statements whose Parse was not confirmed do not exist. */
  dropUnconfirmed(): void {
    if (this.#unnamed && !this.#unnamed.confirmed) this.#unnamed = undefined
    for (const [name, statement] of this.#named) if (!statement.confirmed) this.#named.delete(name)
    for (const [name, statement] of this.#closed.splice(0).reverse())
      if (statement.confirmed && !this.get(name)) this.set(name, statement)
  }

  /** DEALLOCATE ALL: the unnamed statement and the portals stay. */
  deallocateAll(): void {
    this.#named.clear()
  }

  clear(): void {
    this.#named.clear()
    this.#unnamed = undefined
    this.portals.clear()
  }
}

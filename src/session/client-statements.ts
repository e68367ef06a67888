/** A client's prepared statements and portals by the client's own names. What they are on servers is a SharedStatement. */
import type { PlannedQuery } from '../plan/plan.js'
import type { SharedStatement } from '../server/shared-statement.js'

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
}

/** Finds a client's names by those on servers. */
export interface ServerNames {
  nameOf(serverName: string): string | undefined
}

export class ClientStatements implements ServerNames {
  readonly #named = new Map<string, ClientStatement>()
  readonly portals = new Map<string, ClientPortal>()
  #unnamed: ClientStatement | undefined

  get size(): number {
    return this.#named.size
  }

  get(name: string): ClientStatement | undefined {
    return name === '' ? this.#unnamed : this.#named.get(name)
  }

  nameOf(serverName: string): string | undefined {
    if (this.#unnamed?.shared.serverName === serverName) return ''
    for (const [name, { shared }] of this.#named) if (shared.serverName === serverName) return name
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

  /** A simple query drops the unnamed statement and the unnamed portal. */
  dropUnnamed(): void {
    this.#unnamed = undefined
    this.portals.delete('')
  }

  /** After an error: statements whose Parse was not confirmed do not exist. */
  dropUnconfirmed(): void {
    if (this.#unnamed && !this.#unnamed.confirmed) this.#unnamed = undefined
    for (const [name, statement] of this.#named) if (!statement.confirmed) this.#named.delete(name)
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

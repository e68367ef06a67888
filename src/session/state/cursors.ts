/** Cursors of SQL by name: on which shard each stands, and how long it will. A shard knows its own only. */

interface Cursor {
  readonly shard: number
  readonly holds: boolean
  /** Length of the transaction's log when it was declared; −1: it was committed WITH HOLD. */
  at: number
}

export class Cursors {
  readonly #open = new Map<string, Cursor>()

  get size(): number {
    return this.#open.size
  }

  shardOf(name: string): number | undefined {
    return this.#open.get(name)?.shard
  }

  declared(name: string, cursor: Cursor): void {
    this.#open.set(name, cursor)
  }

  /** null: all. */
  closed(name: string | null): void {
    if (name === null) this.#open.clear()
    else this.#open.delete(name)
  }

  /** The transaction is over. */
  ended(committed: boolean): void {
    for (const [name, cursor] of this.#open) {
      if (committed && cursor.holds) cursor.at = -1
      else if (cursor.at >= 0) this.#open.delete(name)
    }
  }

  /** ROLLBACK TO has cut the log to `length`. */
  rolledBackTo(length: number): void {
    for (const [name, { at }] of this.#open) if (at >= length) this.#open.delete(name)
  }

  /** RELEASE has cut the log to `length`: those of the savepoint belong to what is around it. */
  released(length: number): void {
    for (const cursor of this.#open.values()) cursor.at = Math.min(cursor.at, length)
  }
}

/** Where a portal stands, which Bind or DECLARE has made: names of both are of one kind. */
export const shardOfPortal = (
  { transaction, statements }: PortalNames,
  name: string,
): number | undefined => transaction.cursors.shardOf(name) ?? statements.portals.get(name)?.shard

/** A session, as far as it knows where its portals stand. */
export interface PortalNames {
  readonly transaction: { readonly cursors: Cursors }
  readonly statements: {
    readonly portals: ReadonlyMap<string, { readonly shard?: number | undefined }>
  }
}

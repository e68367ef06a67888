/** The databases that a run of `advise` was shown: one connection each, which only reads. */
import type { Query } from '../catalog/read-catalog.js'
import { adminQuery, adminRows, closePg } from '../pg/admin-query.js'
import { connectPg } from '../pg/connect.js'

export class AdvisedDatabases {
  readonly #open = new Map<string, { query: Query; close: () => Promise<void> }>()
  /** Of the first one. */
  name: string | undefined

  async query(url: string): Promise<Query> {
    const known = this.#open.get(url)
    if (known) return known.query
    const client = await connectPg(url)
    const query: Query = (sql) => adminRows(client, sql)
    this.#open.set(url, { query, close: () => closePg(client) })
    await adminQuery(
      client,
      "SET default_transaction_read_only = on; SET statement_timeout = '60s'",
    )
    this.name ??= (await query('SELECT pg_catalog.current_database()'))[0]?.[0] ?? undefined
    return query
  }

  async close(): Promise<void> {
    for (const { close } of this.#open.values()) await close()
  }
}

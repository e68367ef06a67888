/** Questions to one server of a cluster, on a connection of their own. */
import { adminQuery, closePg, type TextRow } from '../pg/admin-query.js'
import { openHostClient } from '../pg/host-client.js'

export interface InstanceAddress {
  port: number
  database: string
  user: string
  password?: string | undefined
}

/** Rows of one statement, values as text. */
export async function askInstance(
  address: InstanceAddress,
  sql: string,
  values: readonly (string | number | boolean | null)[] = [],
): Promise<TextRow[]> {
  const { password, ...rest } = address
  const client = await openHostClient({
    host: '127.0.0.1',
    ...rest,
    password: password ?? '', // never PGPASSWORD of the environment
  })
  try {
    return await adminQuery(client, sql, values)
  } finally {
    await closePg(client)
  }
}

/** Questions to one server of a cluster, on a connection of their own. */
import pg from 'pg'

export interface InstanceAddress {
  port: number
  database: string
  user: string
  password?: string | undefined
}

/** Rows of one statement. */
export async function askInstance(
  address: InstanceAddress,
  sql: string,
  values: readonly unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port: address.port,
    user: address.user,
    database: address.database,
    password: address.password ?? 'none',
    connectionTimeoutMillis: 10_000,
  })
  client.on('error', () => undefined) // a lost connection fails the query itself
  try {
    await client.connect()
    return (await client.query(sql, [...values])).rows as Record<string, unknown>[]
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** One statement over pg, rows as PostgreSQL's text. Type parsers of pg are never used: they lose precision. */
import type pg from 'pg'
import { type Clock, systemClock } from '../base/clock.js'
import { clientWhere, destroySocket, endSocket } from './connect.js'
import { serverFailure } from './server-error.js'

export type TextRow = Record<string, string | null>

const asText = { getTypeParser: () => (value: string) => value }

/** Runs `sql`; every value of a row is text or null. Rejects with an EngineError that names the server. */
export async function adminQuery(
  client: pg.Client,
  sql: string,
  parameters: readonly (string | number | boolean | null)[] = [],
): Promise<TextRow[]> {
  try {
    const config = { text: sql, types: asText as unknown as pg.CustomTypesConfig }
    // Without parameters the simple protocol is used, so that several statements may be given.
    const result = (await client.query(
      parameters.length === 0 ? config : { ...config, values: [...parameters] },
    )) as pg.QueryResult<TextRow> | pg.QueryResult<TextRow>[]
    return Array.isArray(result) ? (result.at(-1)?.rows ?? []) : result.rows
  } catch (error) {
    throw serverFailure(error, clientWhere(client))
  }
}

/** Runs one statement; rows as lists of their columns' texts. */
export async function adminRows(client: pg.Client, sql: string): Promise<(string | null)[][]> {
  try {
    const types = asText as unknown as pg.CustomTypesConfig
    return (await client.query({ text: sql, rowMode: 'array', types })).rows
  } catch (error) {
    throw serverFailure(error, clientWhere(client))
  }
}

/** Runs `work` inside BEGIN … COMMIT; rolls back when it throws. */
export async function inTransaction<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await adminQuery(client, 'begin')
  try {
    const result = await work()
    await adminQuery(client, 'commit')
    return result
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

/** Says goodbye on a connection on which nothing is under way, without waiting for the server to go. */
export async function leavePg(client: pg.Client): Promise<void> {
  const end = client.end()
  endSocket(client)
  await end.catch(() => undefined)
}

const closeWithinMs = 2000

/** Ends a client; one whose server does not answer is cut off after two seconds. */
export async function closePg(client: pg.Client, clock: Clock = systemClock): Promise<void> {
  const ended = new AbortController()
  const end = client.end().catch(() => undefined)
  await Promise.race([end, clock.sleep(closeWithinMs, ended.signal)])
  ended.abort()
  destroySocket(client)
}

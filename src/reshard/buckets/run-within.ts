/** Statements of one transaction within the time that a cutover has left: each gets what the ones before it have not used. */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'

/** Milliseconds, asked anew before each statement; 0: no bound. */
export type TimeLeft = () => number

/** Behind the decision there is only forward. */
export const forEver: TimeLeft = () => 0

/** One after the other, in the open transaction of `client`: a limit for all of a text would be one for each statement. */
export async function runWithin(
  client: HostClient,
  statements: readonly string[],
  left: TimeLeft,
): Promise<void> {
  for (const sql of statements) {
    const ms = Math.ceil(left())
    await adminQuery(
      client,
      `SET LOCAL statement_timeout = ${ms}; SET LOCAL lock_timeout = ${ms}; ${sql}`,
    )
  }
}

/** Objects of a schema made on the targets, several at once, each once: what is made is recorded in the transaction that makes it. */
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteLiteral } from '../../pg/sql-names.js'
import { openShard, placeOf, type ReshardSide } from '../side.js'
import type { SchemaEntry } from './dump-schema.js'

export interface EntryWork {
  readonly run: string
  /** Connections a target. */
  readonly jobs: number
  /** Called when an object has been made. */
  readonly onEntry?: () => Promise<void>
}

/** Runs `sql` in one transaction with its record; nothing when it is recorded. @throws RESHARD_SCHEMA_APPLY */
export async function applyOnce(
  client: HostClient,
  server: string,
  done: { readonly run: string; readonly what: string },
  sql: string,
): Promise<boolean> {
  const [known] = await adminQuery(
    client,
    'SELECT 1 AS found FROM pgshard.reshard_done WHERE run = $1 AND what = $2',
    [done.run, done.what],
  )
  if (known) return false
  const record = `INSERT INTO pgshard.reshard_done (run, what) VALUES (${quoteLiteral(done.run)}, ${quoteLiteral(done.what)})`
  try {
    // One text is one implicit transaction: a failure leaves nothing of it.
    await adminQuery(
      client,
      `SET check_function_bodies = false; SET search_path = ''; ${sql}\n; ${record}`,
    )
    return true
  } catch (error) {
    const reason = toEngineError(error).message
    throw engineError('RESHARD_SCHEMA_APPLY', { server, reason }, { cause: error })
  }
}

/** The table that an entry is about, when its text says so plainly. */
function tableOf({ sql }: SchemaEntry): string | undefined {
  const name = String.raw`(?:"(?:[^"]|"")+"|[\w$]+)\.(?:"(?:[^"]|"")+"|[\w$]+)`
  return (
    new RegExp(`^ALTER TABLE (?:ONLY )?(${name})`, 'm').exec(sql)?.[1] ??
    new RegExp(`^CREATE (?:UNIQUE )?INDEX .*? ON (?:ONLY )?(${name}) USING`, 'm').exec(sql)?.[1]
  )
}

/** Those of one table one after the other, in their order; those of different tables at once; what is of no table last. */
export function groupEntries(entries: readonly SchemaEntry[]): {
  readonly groups: SchemaEntry[][]
  readonly rest: SchemaEntry[]
} {
  const groups = new Map<string, SchemaEntry[]>()
  const rest: SchemaEntry[] = []
  for (const entry of entries) {
    // Once something is left over, what may build on it comes after it.
    const table = entry.type === 'INDEX ATTACH' ? undefined : tableOf(entry)
    if (table === undefined) rest.push(entry)
    else groups.set(table, [...(groups.get(table) ?? []), entry])
  }
  return { groups: [...groups.values()], rest }
}

/** Makes what is not there yet, on all targets at once. @throws RESHARD_SCHEMA_APPLY */
export async function makeEntries(
  target: ReshardSide,
  entries: readonly SchemaEntry[],
  work: EntryWork,
): Promise<void> {
  if (entries.length === 0) return
  const ends = await Promise.allSettled(
    target.shards.map((_, shard) => makeOnShard(target, shard, entries, work)),
  )
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

async function makeOnShard(
  target: ReshardSide,
  shard: number,
  entries: readonly SchemaEntry[],
  work: EntryWork,
): Promise<void> {
  const { groups, rest } = groupEntries(entries)
  const waiting = [...groups]
  const count = Math.max(1, Math.min(work.jobs, groups.length))
  const ends = await Promise.allSettled(
    Array.from({ length: count }, () => makeGroups(target, shard, waiting, work)),
  )
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  await makeGroups(target, shard, [rest], work)
}

async function makeGroups(
  target: ReshardSide,
  shard: number,
  waiting: SchemaEntry[][],
  work: EntryWork,
): Promise<void> {
  const where = target.shards[shard] as (typeof target.shards)[number]
  const client = await openShard(where)
  try {
    for (let group = waiting.shift(); group; group = waiting.shift()) {
      for (const entry of group) {
        const what = `${entry.type} ${entry.name}`
        if (await applyEntry(client, placeOf(where), { run: work.run, what }, entry)) {
          await work.onEntry?.()
        }
      }
    }
  } catch (error) {
    waiting.length = 0
    throw error
  } finally {
    await client.end().catch(() => undefined)
  }
}

const DEADLOCK = '40P01'
const TRIES = 5

/** Partitions and their parents lock each other: who is chosen as the victim of a deadlock tries again. */
async function applyEntry(
  client: HostClient,
  server: string,
  done: { readonly run: string; readonly what: string },
  entry: SchemaEntry,
): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await applyOnce(client, server, done, entry.sql)
    } catch (error) {
      const { sqlstate } = toEngineError((error as Error).cause)
      if (sqlstate !== DEADLOCK || attempt === TRIES) throw error
    }
  }
}

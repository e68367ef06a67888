/**
 * What the workers and proxies of one database tell each other of their transactions that wait, through a table on shard 0:
 * a deadlock may have members in several processes, none of which knows all of it. Who lacks `pgshard setup`, or the
 * right to the table, is alone.
 */
import type { ServerConnection } from '../../server/server-connection.js'
import type { WaitingParty } from './waiting-party.js'

/** As it stands in the table. */
interface PublishedParty {
  readonly name: string
  readonly order: number
  readonly since: number
  /** Shard and process id, and 1 behind those that are apart. */
  readonly servers: readonly (readonly [number, number, 1?])[]
  readonly decision: string | null
  /** The pool in whose line it stands, and who has its servers. */
  readonly pool: { readonly shard: number; readonly holders: readonly string[] } | null
}

/** What a process has told, and when. */
interface OtherProcess {
  /** Seconds by the clock of shard 0. */
  readonly seenAt: number
  readonly parties: readonly PublishedParty[]
}

/** Older ones are of a process that has no late transaction any more. */
const FRESH = "interval '10 s'"
const KEPT = "interval '1 minute'"

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** Tells of ours, and hears of the others. @throws when the table is not there or not for this user */
export async function exchange(
  server: ServerConnection,
  process: string,
  parties: readonly WaitingParty[],
): Promise<WaitingParty[]> {
  const told = quoted(JSON.stringify(parties.map(publish)))
  await server.query(
    `INSERT INTO pgshard.waiter (process, parties) VALUES (${quoted(process)}, ${told})
     ON CONFLICT (process) DO UPDATE SET parties = excluded.parties, seen_at = pg_catalog.clock_timestamp()`,
  )
  // apart from the other, so that two processes never wait for each other's rows
  await server.query(
    `DELETE FROM pgshard.waiter WHERE seen_at < pg_catalog.clock_timestamp() - ${KEPT}`,
  )
  const results = await server.query(
    `SELECT extract(epoch FROM seen_at), parties FROM pgshard.waiter
     WHERE process <> ${quoted(process)} AND seen_at > pg_catalog.clock_timestamp() - ${FRESH}`,
  )
  return partiesOf(
    (results.at(-1)?.rows ?? []).map(([seenAt, text]) => ({
      seenAt: Number(seenAt),
      parties: readParties(text ?? '[]'),
    })),
  )
}

/** As this process sees them. */
function partiesOf(others: readonly OtherProcess[]): WaitingParty[] {
  return others.flatMap(({ seenAt, parties }) =>
    parties.map(({ name, order, since, servers, decision, pool }) => ({
      ...{ name, order, since, seenAt },
      servers: servers.map(([shard, pid, isApart]) => ({ shard, pid, isApart: isApart === 1 })),
      decision: decision ?? undefined,
      pool: pool ?? undefined,
    })),
  )
}

/** Seconds by the clock of the server. */
export async function timeOf(server: ServerConnection): Promise<number> {
  const results = await server.query('SELECT extract(epoch FROM pg_catalog.clock_timestamp())')
  return Number(results.at(-1)?.rows[0]?.[0])
}

const publish = ({
  name,
  order,
  since,
  servers,
  decision,
  pool,
}: WaitingParty): PublishedParty => ({
  ...{ name, order, since },
  servers: servers.map(({ shard, pid, isApart }) =>
    isApart ? ([shard, pid, 1] as const) : ([shard, pid] as const),
  ),
  decision: decision ?? null,
  pool: pool ? { shard: pool.shard, holders: pool.holders } : null,
})

/** What another version wrote in another form is left out. */
function readParties(text: string): PublishedParty[] {
  const all: unknown = JSON.parse(text)
  return Array.isArray(all) ? all.filter(isParty) : []
}

function isParty(one: unknown): one is PublishedParty {
  const { name, order, since, servers, decision, pool } = (one ?? {}) as Partial<PublishedParty>
  const isPlain = typeof name === 'string' && typeof order === 'number' && typeof since === 'number'
  const hasDecision = decision === null || typeof decision === 'string'
  const hasPool = pool === null || (typeof pool?.shard === 'number' && Array.isArray(pool.holders))
  return isPlain && hasDecision && hasPool && Array.isArray(servers) && servers.every(isServer)
}

const isServer = (pair: unknown): boolean =>
  Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'number')

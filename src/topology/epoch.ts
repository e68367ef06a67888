/**
 * Which of two databases holds the truth: the row `pgshard.topology` of each shard, and the registry of proxies beside it.
 * A cutover ends with the commit of a higher epoch on the first shard of the new side; the old side is fenced by then.
 * Pure: SQL texts and what they say.
 */

/** The row of one database, as far as it is kept there. */
export interface TopologyRow {
  /** Names this side for ever, whatever it is called in a configuration. */
  readonly side: string
  readonly epoch: number
  /** Clients are served from here. */
  readonly active: boolean
  /** Writes are refused. */
  readonly fenced: boolean
  /** The side that takes over, or has. */
  readonly truthSide: string | undefined
  /** Where that is, in words. */
  readonly truth: string | undefined
  /** The run that is about to switch, or has. */
  readonly move: string | undefined
  /** What clients call the database that it is about: that name follows the truth, on whichever side it stands in a file. */
  readonly servedAs: string | undefined
  /** A cutover that leaves this side begins within moments. */
  readonly isPreparing: boolean
  /** The two sides of the move have shards in common: one that is not active holds too many rows, or lacks some. */
  readonly isShared: boolean
}

/** Proxies write their heartbeat this often, and look at the epoch. */
export const HEARTBEAT_MS = 2000
/** A proxy that has not been heard of for so long is not waited for: the fence keeps its clients from writing. */
export const LIVE_SECONDS = 10
/** How often a proxy looks whether the tables are there, while clients use the database. */
export const DISCOVER_MS = 3000
/** A proxy holds its clients so long while nobody knows which side is the truth. */
export const HOLD_MS = 5000

/** Marks an error as a refusal of the fence: its constraint name. */
export const FENCE_MARK = 'pgshard_fence'

/** Made by `setup` and, where it was not run, by `reshard`; may be run again. */
export const topologyTables = `
CREATE TABLE IF NOT EXISTS pgshard.proxy (
  id text PRIMARY KEY,
  host text NOT NULL,
  port integer NOT NULL,
  process_id integer NOT NULL,
  version text NOT NULL,
  database text NOT NULL,
  epoch bigint NOT NULL DEFAULT 0,
  started_at timestamptz NOT NULL DEFAULT now(),
  heartbeat_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE pgshard.proxy IS 'running proxies; one whose heartbeat is recent must be reached by a cutover';

CREATE TABLE IF NOT EXISTS pgshard.topology (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  epoch bigint NOT NULL DEFAULT 0,
  active boolean NOT NULL DEFAULT true,
  fenced boolean NOT NULL DEFAULT false,
  truth text,
  changed_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO pgshard.topology (only_row) VALUES (true) ON CONFLICT DO NOTHING;
COMMENT ON TABLE pgshard.topology IS 'which epoch this database belongs to, and where the truth about it is kept';
`

/** What a cutover needs besides; a table of an older setup gets it too. */
export const topologyColumns = `
ALTER TABLE pgshard.topology ADD COLUMN IF NOT EXISTS side text NOT NULL DEFAULT gen_random_uuid()::text,
  ADD COLUMN IF NOT EXISTS truth_side text, ADD COLUMN IF NOT EXISTS move text,
  ADD COLUMN IF NOT EXISTS served_as text, ADD COLUMN IF NOT EXISTS preparing_at timestamptz,
  ADD COLUMN IF NOT EXISTS shared boolean NOT NULL DEFAULT false;
`

/** One column, true or false: whether there is a row to read. */
export const hasTopologySql = `SELECT pg_catalog.to_regclass('pgshard.topology') IS NOT NULL`

/** A cutover that was announced longer ago is not waited for any more. */
const ANNOUNCED_SECONDS = 60

/** One column: the row as JSON, whichever columns it has. */
export const topologySql = `SELECT (pg_catalog.to_jsonb(t) || pg_catalog.jsonb_build_object('preparing',
  (pg_catalog.to_jsonb(t) ->> 'preparing_at')::timestamptz
    > pg_catalog.clock_timestamp() - interval '${ANNOUNCED_SECONDS} s'))::text FROM pgshard.topology t`

/** What `topologySql` gave. */
export function readTopologyRow(json: string): TopologyRow {
  const row = JSON.parse(json) as Record<string, unknown>
  const text = (name: string): string | undefined =>
    typeof row[name] === 'string' ? (row[name] as string) : undefined
  return {
    side: text('side') ?? '',
    epoch: Number(row['epoch']),
    active: row['active'] === true,
    fenced: row['fenced'] === true,
    truthSide: text('truth_side'),
    truth: text('truth'),
    move: text('move'),
    servedAs: text('served_as'),
    isPreparing: row['preparing'] === true,
    isShared: row['shared'] === true,
  }
}

/** Nobody may even read there: rows of buckets that move stand twice, or are gone. */
export const isUnsettled = (row: TopologyRow): boolean => row.isShared && !row.active

/** The row of a database whose first shard has `row`: one of its other shards may hold its own, where sides have shards in common. */
export const isOwnRow = (row: TopologyRow, other: TopologyRow): boolean =>
  other.isShared && other.move === row.move && other.side !== row.side

/** The side under this name has been left, or is about to be, and the name is what clients say. */
export const isLeft = (name: string, row: TopologyRow): boolean =>
  !row.active && row.truthSide !== undefined && row.servedAs === name

/** The database, by its name in a configuration, that is about to take over from `name`, whose row is `row`. */
export function heirOf(
  name: string,
  row: TopologyRow,
  others: Iterable<readonly [string, TopologyRow]>,
): string | undefined {
  if (!row.active || !row.isPreparing || row.servedAs !== name) return undefined
  for (const [other, { move, active, servedAs }] of others) {
    if (other !== name && !active && move === row.move && servedAs === name) return other
  }
  return undefined
}

/** The database, by its name in a configuration, that has taken over from `name`, whose row is `row`. */
export function successorOf(
  name: string,
  row: TopologyRow,
  others: Iterable<readonly [string, TopologyRow]>,
): string | undefined {
  if (!isLeft(name, row)) return undefined
  for (const [other, { side, active, epoch }] of others) {
    if (side === row.truthSide && active && epoch >= row.epoch) return other
  }
  return undefined
}

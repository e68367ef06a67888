/**
 * Schema pgshard as SQL, a version at a time. A version that was released is never changed: a new one is added.
 * Every statement may be run again where that costs nothing, because the resharder may have made the schema before.
 */
import { topologyColumns, topologyTables } from '../topology/epoch.js'

/** Key of the advisory lock under which anybody makes or changes objects of the schema. */
export const SCHEMA_LOCK = 7_307_498_301

/** Also made by `copy-shard` where there has been no setup. */
export const checkpointTable = `
CREATE TABLE IF NOT EXISTS pgshard.copy_checkpoint (
  job text NOT NULL,
  part integer NOT NULL DEFAULT 0,
  target_table text NOT NULL,
  input jsonb NOT NULL,
  options jsonb NOT NULL,
  map_hash text NOT NULL,
  range_start bigint NOT NULL,
  range_end bigint NOT NULL,
  last_row bigint NOT NULL,
  rows_written bigint NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (job, part)
);
COMMENT ON TABLE pgshard.copy_checkpoint IS 'how far each pgshard copy-shard job has come on this shard';
`

const tables = `
CREATE TABLE pgshard.schema_version (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  version integer NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE pgshard.schema_version IS 'version of schema pgshard; written by pgshard setup';

CREATE TABLE pgshard.shard (
  id integer PRIMARY KEY CHECK (id > 0),
  cluster_id text NOT NULL CHECK (cluster_id ~ '^[0-9a-f]{8}$'),
  number integer NOT NULL,
  is_here boolean NOT NULL
);
CREATE UNIQUE INDEX shard_is_here ON pgshard.shard (is_here) WHERE is_here;
COMMENT ON TABLE pgshard.shard IS 'the shards of this cluster by ids that never change; is_here marks this database';

CREATE TABLE pgshard.decision (
  id bytea PRIMARY KEY CHECK (octet_length(id) = 16),
  outcome text NOT NULL CHECK (outcome IN ('commit', 'abort')),
  shard_ids integer[] NOT NULL,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  decided_by name NOT NULL DEFAULT session_user,
  decided_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE pgshard.decision IS 'outcomes of transactions over several shards for which this shard decides';

${checkpointTable}
CREATE TABLE pgshard.node (
  id integer PRIMARY KEY CHECK (id BETWEEN 0 AND 1023),
  holder text NOT NULL,
  leased_until timestamptz NOT NULL
);
COMMENT ON TABLE pgshard.node IS 'leases of node numbers for unique ids';

${topologyTables}`

/** What came to the first version's tables: a shard that was set up before gets it too. */
const waitersAndSides = `
CREATE UNLOGGED TABLE IF NOT EXISTS pgshard.waiter (
  process text PRIMARY KEY,
  parties jsonb NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE pgshard.waiter IS 'transactions over shards that wait now, of each proxy: for deadlocks between proxies';
${topologyColumns}`

/** The secret stays with the proxy that decides; a gid shows only the head of its hash. */
const decideFunctions = `
CREATE FUNCTION pgshard.decide(secret bytea, shard_ids integer[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  IF secret IS NULL OR octet_length(secret) < 16 OR shard_ids IS NULL THEN
    RAISE EXCEPTION 'a decision needs a secret of at least 16 bytes and its shards' USING ERRCODE = '22023';
  END IF;
  -- Waits for a recovery that is writing the same key.
  INSERT INTO pgshard.decision (id, outcome, shard_ids)
    VALUES (substr(sha256(secret), 1, 16), 'commit', decide.shard_ids)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'could not commit on all shards: recovery has already rolled the transaction back'
      USING ERRCODE = '40001', HINT = 'run the transaction again';
  END IF;
END
$function$;

CREATE FUNCTION pgshard.forget(secret bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
  DELETE FROM pgshard.decision WHERE id = substr(sha256(secret), 1, 16) AND outcome = 'commit';
$function$;
`

const recoveryFunctions = `
CREATE FUNCTION pgshard.decision_key(gid text) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  parts text[] := regexp_match(gid, '^pgshard_([0-9a-f]{8})_([0-9]{1,9})_([0-9a-f]{32})_[0-9]{1,9}$');
BEGIN
  IF parts IS NULL OR NOT EXISTS (
    SELECT FROM pgshard.shard
    WHERE is_here AND cluster_id = parts[1] AND id = parts[2]::integer
  ) THEN
    RAISE EXCEPTION '"%" is no transaction for which this shard decides', gid USING ERRCODE = '22023';
  END IF;
  RETURN decode(parts[3], 'hex');
END
$function$;

CREATE FUNCTION pgshard.abort(gid text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  key bytea := pgshard.decision_key(gid);
  known text;
BEGIN
  LOOP
    -- Waits for a decider whose row is not committed yet.
    INSERT INTO pgshard.decision (id, outcome, shard_ids) VALUES (key, 'abort', '{}')
      ON CONFLICT DO NOTHING;
    IF FOUND THEN RETURN 'abort'; END IF;
    SELECT outcome INTO known FROM pgshard.decision WHERE id = key;
    IF FOUND THEN RETURN known; END IF;
  END LOOP;
END
$function$;

CREATE FUNCTION pgshard.settle(key bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
  DELETE FROM pgshard.decision WHERE id = key AND outcome = 'commit';
$function$;

CREATE FUNCTION pgshard.sweep_aborts() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
  -- A decider had its transaction id before the first PREPARE, so none is left that could still meet the row.
  WITH gone AS (
    DELETE FROM pgshard.decision
    WHERE outcome = 'abort' AND xid < pg_snapshot_xmin(pg_current_snapshot())
    RETURNING 1
  ) SELECT count(*) FROM gone;
$function$;
`

/**
 * The remainder that PARTITION BY HASH takes, from the 64-bit hash of the key: unsigned, in halves of 32 bits because bigint is signed.
 * `0x49a0f4dd15e5a8e3` is added by `hash_combine64` in `src/include/common/hashfn.h`; NULL has hash 0.
 */
const bucketFunction = `
CREATE FUNCTION pgshard.bucket(hash bigint, modulus integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $function$
  SELECT coalesce((
    ((((hash >> 32) & 4294967295) + 1235285213
      + (((hash & 4294967295) + 367372515) >> 32)) & 4294967295) % modulus
      * (4294967296 % modulus)
    + (((hash & 4294967295) + 367372515) & 4294967295)
  ) % modulus, 0)::integer
$function$;
`

const publicGrants = `
GRANT USAGE ON SCHEMA pgshard TO PUBLIC;
GRANT SELECT ON pgshard.schema_version, pgshard.shard, pgshard.topology TO PUBLIC;
GRANT EXECUTE ON FUNCTION pgshard.decide(bytea, integer[]), pgshard.forget(bytea), pgshard.bucket(bigint, integer) TO PUBLIC;
REVOKE ALL ON FUNCTION pgshard.abort(text), pgshard.settle(bytea), pgshard.sweep_aborts(), pgshard.decision_key(text) FROM PUBLIC;
`

/** Numbers for `unique_id()`: counted by each shard for itself, and told apart by the number of the shard's node in their low bits. */
const uniqueNumbers = `
CREATE SEQUENCE IF NOT EXISTS pgshard.unique_number AS bigint MINVALUE 0 START WITH 1 MAXVALUE 9007199254740991 NO CYCLE;
GRANT USAGE ON SEQUENCE pgshard.unique_number TO PUBLIC;
GRANT SELECT ON pgshard.node TO PUBLIC;
`

/**
 * The function by which one shard gives ids that no other gives, and the lease of its node number, which nobody else ever
 * gets: numbers of nodes follow from the ids of shards, which never change.
 */
export function uniqueIdSql(shardIds: readonly number[], here: number): string {
  const leases = shardIds.map((id) => `(${id - 1}, 'shard ${id}', 'infinity')`)
  return `INSERT INTO pgshard.node (id, holder, leased_until) VALUES
  ${leases.join(',\n  ')}
  ON CONFLICT (id) DO NOTHING;
CREATE OR REPLACE FUNCTION pgshard.unique_id() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN (nextval('pgshard.unique_number'::regclass) << 10) | ${(shardIds[here] as number) - 1};
COMMENT ON FUNCTION pgshard.unique_id() IS 'a number that no other shard of this cluster gives';
GRANT EXECUTE ON FUNCTION pgshard.unique_id() TO PUBLIC;
`
}

export interface SchemaVersion {
  readonly version: number
  readonly sql: string
}

/** In order; the last is the version that this program needs. */
export const schemaVersions: readonly SchemaVersion[] = [
  {
    version: 1,
    sql: `${tables}${decideFunctions}${recoveryFunctions}${bucketFunction}${publicGrants}`,
  },
  { version: 2, sql: uniqueNumbers },
  { version: 3, sql: waitersAndSides },
]

export const CURRENT_VERSION = (schemaVersions.at(-1) as SchemaVersion).version

/** What a role needs that runs clients' statements, recovers, copies and reports: one statement a line. `role` is quoted. */
export function roleGrants(role: string): string {
  return `GRANT SELECT ON pgshard.decision TO ${role};
GRANT EXECUTE ON FUNCTION pgshard.abort(text), pgshard.settle(bytea), pgshard.sweep_aborts() TO ${role};
GRANT SELECT, INSERT, UPDATE, DELETE ON pgshard.copy_checkpoint, pgshard.node, pgshard.proxy, pgshard.waiter TO ${role};
`
}

/** Every object of all versions, dropped one by one without CASCADE: what depends on them stops it. */
export const dropObjects = `
DROP FUNCTION IF EXISTS pgshard.unique_id();
DROP SEQUENCE IF EXISTS pgshard.unique_number;
DROP FUNCTION IF EXISTS pgshard.decide(bytea, integer[]), pgshard.forget(bytea), pgshard.abort(text),
  pgshard.settle(bytea), pgshard.sweep_aborts(), pgshard.decision_key(text), pgshard.bucket(bigint, integer);
DROP TABLE IF EXISTS pgshard.schema_version, pgshard.shard, pgshard.decision, pgshard.copy_checkpoint,
  pgshard.node, pgshard.proxy, pgshard.waiter, pgshard.topology,
  pgshard.reshard_run, pgshard.reshard_object, pgshard.reshard_table, pgshard.reshard_progress,
  pgshard.reshard_copied, pgshard.reshard_done, pgshard.reshard_part, pgshard.reshard_text,
  pgshard.reshard_verified, pgshard.reshard_setting, pgshard.reshard_sample;
DROP FUNCTION IF EXISTS pgshard.fence();
DROP SCHEMA IF EXISTS pgshard;
`

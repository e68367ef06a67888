/** The tables of schema pgshard that moves are recorded in. Made anew they are as `alter` leaves older ones. Data only. */

/** On every target: what is copied and applied there, committed together with the rows that it speaks of. */
export const targetTables = `
CREATE SCHEMA IF NOT EXISTS pgshard;
CREATE TABLE IF NOT EXISTS pgshard.reshard_progress (
  run text, source int, lsn pg_lsn NOT NULL, PRIMARY KEY (run, source));
CREATE TABLE IF NOT EXISTS pgshard.reshard_copied (
  run text, "table" text, source int, part int, watermark pg_lsn NOT NULL, rows bigint NOT NULL, bytes bigint NOT NULL,
  copied_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, "table", source, part));
CREATE TABLE IF NOT EXISTS pgshard.reshard_done (
  run text, what text, done_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, what));`

/** On the first target alone. */
export const journalTables = `
CREATE TABLE IF NOT EXISTS pgshard.reshard_run (
  run text PRIMARY KEY, source text NOT NULL, target text NOT NULL, state text NOT NULL, error text,
  facts jsonb NOT NULL DEFAULT '{}', started_at timestamptz NOT NULL DEFAULT now(),
  changed_at timestamptz NOT NULL DEFAULT now());
ALTER TABLE pgshard.reshard_run ADD COLUMN IF NOT EXISTS step text;
CREATE TABLE IF NOT EXISTS pgshard.reshard_object (
  run text, kind text, side text, shard int, name text, is_gone boolean NOT NULL DEFAULT false,
  registered_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, kind, side, shard, name));
CREATE TABLE IF NOT EXISTS pgshard.reshard_table (
  run text, name text, rows bigint NOT NULL, bytes bigint NOT NULL, total_bytes bigint NOT NULL,
  state text NOT NULL, PRIMARY KEY (run, name));
CREATE TABLE IF NOT EXISTS pgshard.reshard_part (
  run text, "table" text, source int, part int, low text, PRIMARY KEY (run, "table", source, part));
CREATE TABLE IF NOT EXISTS pgshard.reshard_text (
  run text, name text, content text NOT NULL, PRIMARY KEY (run, name));`

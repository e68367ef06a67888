/** What a guard has seen, and limits that are changed while it watches: tables of schema pgshard on the target's first shard. */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { openShard, type ReshardSide, withShard } from '../side.js'
import { type GuardLimits, readSetting } from './guard-limits.js'

/** One look at a run, for the report. */
export interface Sample {
  /** Since the epoch. */
  readonly atMs: number
  readonly copiedBytes: number
  readonly changes: number
  readonly lagBytes: number
  readonly walKept: number
  readonly latencyMs: number
  readonly isHeld: boolean
}

export interface Asked {
  readonly limits: Partial<GuardLimits>
  /** The run shall end, so that it can be taken up again. */
  readonly stop: boolean
}

export interface SampleStore {
  /** Keeps a sample; gives what was asked of the run since. */
  exchange(sample: Sample): Promise<Asked>
  close(): Promise<void>
}

const tables = `
CREATE SCHEMA IF NOT EXISTS pgshard;
CREATE TABLE IF NOT EXISTS pgshard.reshard_setting (
  run text, name text, value text NOT NULL, set_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, name));
CREATE TABLE IF NOT EXISTS pgshard.reshard_sample (
  run text, at timestamptz, copied_bytes bigint NOT NULL, changes bigint NOT NULL, lag_bytes bigint NOT NULL,
  wal_kept bigint NOT NULL, latency_ms float8 NOT NULL, is_held boolean NOT NULL, PRIMARY KEY (run, at));`

const makeTables = `BEGIN; SELECT pg_advisory_xact_lock(7307498303); ${tables} COMMIT`

const STOP = 'stop'

/** After this many samples only every tenth is kept: a move may take days. */
const DENSE_SAMPLES = 3_600

export function openSampleStore(target: ReshardSide, run: string): SampleStore {
  let client: HostClient | undefined
  let count = 0
  return {
    exchange: async (sample) => {
      if (!client) {
        client = await openShard(target.shards[0] as ReshardSide['shards'][number])
        await adminQuery(client, makeTables)
      }
      const isKept = count++ < DENSE_SAMPLES || count % 10 === 0
      if (isKept) await keep(client, run, sample)
      const rows = await adminQuery(
        client,
        'SELECT name, value FROM pgshard.reshard_setting WHERE run = $1',
        [run],
      )
      let limits: Partial<GuardLimits> = {}
      for (const row of rows) {
        if (row['name'] === STOP) continue
        limits = { ...limits, ...readSetting(row['name'] ?? '', row['value'] ?? '') }
      }
      const stop = rows.some((row) => row['name'] === STOP)
      // Heard once: the run that is taken up again must not end at once.
      if (stop) {
        const gone = 'DELETE FROM pgshard.reshard_setting WHERE run = $1 AND name = $2'
        await adminQuery(client, gone, [run, STOP])
      }
      return { limits, stop }
    },
    close: async () => {
      await client?.end().catch(() => undefined)
    },
  }
}

async function keep(client: HostClient, run: string, sample: Sample): Promise<void> {
  await adminQuery(
    client,
    `INSERT INTO pgshard.reshard_sample (run, at, copied_bytes, changes, lag_bytes, wal_kept, latency_ms, is_held)
     VALUES ($1, to_timestamp($2::float8 / 1000), $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
    [
      run,
      sample.atMs,
      sample.copiedBytes,
      sample.changes,
      sample.lagBytes,
      sample.walKept,
      sample.latencyMs,
      sample.isHeld,
    ],
  )
}

/** Changes a limit of a run that may be under way. @throws RESHARD_SETTING */
export async function changeSetting(
  target: ReshardSide,
  run: string,
  name: string,
  value: string,
): Promise<void> {
  readSetting(name, value)
  await put(target, run, name, value)
}

/** Asks a run to end after what it is doing. */
export function requestStop(target: ReshardSide, run: string): Promise<void> {
  return put(target, run, STOP, 'asked')
}

async function put(target: ReshardSide, run: string, name: string, value: string): Promise<void> {
  await withShard(target.shards[0] as ReshardSide['shards'][number], async (client) => {
    await adminQuery(client, makeTables)
    await adminQuery(
      client,
      `INSERT INTO pgshard.reshard_setting (run, name, value) VALUES ($1, $2, $3)
       ON CONFLICT (run, name) DO UPDATE SET value = excluded.value, set_at = now()`,
      [run, name, value],
    )
  })
}

/** The samples of a run, oldest first; none when it kept none. */
export async function readSamples(target: ReshardSide, run: string): Promise<Sample[]> {
  return withShard(target.shards[0] as ReshardSide['shards'][number], async (client) => {
    const [found] = await adminQuery(
      client,
      `SELECT (to_regclass('pgshard.reshard_sample') IS NOT NULL)::text AS found`,
    )
    if (found?.['found'] !== 'true') return []
    const rows = await adminQuery(
      client,
      `SELECT (extract(epoch FROM at) * 1000)::text AS at, copied_bytes::text AS copied, changes::text AS changes,
              lag_bytes::text AS lag, wal_kept::text AS kept, latency_ms::text AS latency, is_held::text AS held
         FROM pgshard.reshard_sample WHERE run = $1 ORDER BY reshard_sample.at`,
      [run],
    )
    return rows.map((row) => ({
      atMs: Number(row['at']),
      copiedBytes: Number(row['copied']),
      changes: Number(row['changes']),
      lagBytes: Number(row['lag']),
      walKept: Number(row['kept']),
      latencyMs: Number(row['latency']),
      isHeld: row['held'] === 'true',
    }))
  })
}

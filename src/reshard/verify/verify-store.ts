/** What a verification has found equal so far, so that one that died goes on with the rest: in the journal, or in a file. */
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { adminQuery } from '../../pg/admin-query.js'
import { placeOf, type ReshardSide, withShard } from '../side.js'
import type { TableComparison } from './compare-tables.js'

/** One of `of` parts of a table, found equal. */
export interface VerifiedPart {
  readonly part: number
  readonly of: number
  readonly comparison: TableComparison
}

export interface VerifyStore {
  /** Parts that an earlier attempt has found equal. */
  read(): Promise<readonly VerifiedPart[]>
  /** Called for equal parts only: what differs is looked at again. */
  add(part: VerifiedPart): Promise<void>
  /** The verification is complete: the next one begins anew. */
  clear(): Promise<void>
}

/** Remembers nothing. */
export const noStore: VerifyStore = {
  read: async () => [],
  add: async () => undefined,
  clear: async () => undefined,
}

const table = `
CREATE SCHEMA IF NOT EXISTS pgshard;
CREATE TABLE IF NOT EXISTS pgshard.reshard_verified (
  run text, name text, part int, parts int NOT NULL, comparison jsonb NOT NULL,
  verified_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, name, part));`

/** In schema pgshard of the first shard of `home`. `run` tells verifications apart that must not share parts. */
export function journalStore(home: ReshardSide, run: string): VerifyStore {
  const first = home.shards[0] as ReshardSide['shards'][number]
  return {
    read: () =>
      withShard(first, async (client) => {
        await adminQuery(client, `BEGIN; SELECT pg_advisory_xact_lock(7307498302); ${table} COMMIT`)
        const rows = await adminQuery(
          client,
          `SELECT part::text, parts::text, comparison::text FROM pgshard.reshard_verified WHERE run = $1`,
          [run],
        )
        return rows.map((row) => ({
          part: Number(row['part']),
          of: Number(row['parts']),
          comparison: JSON.parse(row['comparison'] as string) as TableComparison,
        }))
      }),
    add: ({ part, of, comparison }) =>
      withShard(first, async (client) => {
        await adminQuery(
          client,
          `INSERT INTO pgshard.reshard_verified (run, name, part, parts, comparison) VALUES ($1, $2, $3, $4, $5::jsonb)
           ON CONFLICT (run, name, part) DO UPDATE SET parts = excluded.parts, comparison = excluded.comparison, verified_at = now()`,
          [run, comparison.name, part, of, JSON.stringify(comparison)],
        )
      }),
    clear: () =>
      withShard(first, async (client) => {
        await adminQuery(client, 'DELETE FROM pgshard.reshard_verified WHERE run = $1', [run])
      }),
  }
}

/** A file of JSON lines; one that belongs to other servers is begun anew. */
export function fileStore(path: string, source: ReshardSide, target: ReshardSide): VerifyStore {
  const head = JSON.stringify({
    from: source.shards.map(placeOf),
    to: target.shards.map(placeOf),
  })
  return {
    read: async () => {
      const text = await readFile(path, 'utf8').catch(() => '')
      const [first, ...lines] = text.split('\n')
      if (first !== head) {
        await writeFile(path, `${head}\n`)
        return []
      }
      return lines.flatMap(readLine)
    },
    add: (part) => appendFile(path, `${JSON.stringify(part)}\n`),
    clear: () => writeFile(path, `${head}\n`),
  }
}

/** The last line may be cut by a death. */
function readLine(line: string): VerifiedPart[] {
  try {
    return line === '' ? [] : [JSON.parse(line) as VerifiedPart]
  } catch {
    return []
  }
}

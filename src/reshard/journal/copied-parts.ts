/** What each target has of the copy: the checkpoints that were committed with the rows. Reads only. */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteLiteral } from '../../pg/sql-names.js'
import { type Lsn, parseLsn, printLsn } from '../../replication/lsn.js'
import { onEachShard, type ReshardSide } from '../side.js'

export interface CopiedPart {
  readonly table: string
  readonly source: number
  readonly part: number
  /** Commits whose record starts here or later are not in the rows. */
  readonly watermark: Lsn
  /** Of the whole part, on all targets together. */
  readonly rows: number
  readonly bytes: number
}

/** The parts that a target has. */
export async function readCopiedOf(client: HostClient, run: string): Promise<CopiedPart[]> {
  const rows = await adminQuery(
    client,
    `SELECT "table", source::text AS source, part::text AS part, watermark::text AS watermark, rows::text, bytes::text
       FROM pgshard.reshard_copied WHERE run = $1`,
    [run],
  )
  return rows.map((row) => ({
    table: row['table'] as string,
    source: Number(row['source']),
    part: Number(row['part']),
    watermark: parseLsn(row['watermark'] as string),
    rows: Number(row['rows']),
    bytes: Number(row['bytes']),
  }))
}

/** By target shard. */
export async function readCopied(target: ReshardSide, run: string): Promise<CopiedPart[][]> {
  return onEachShard(target, (client) => readCopiedOf(client, run))
}

/** Records a part, in the transaction that writes its rows. */
export function copiedSql(run: string, part: CopiedPart): string {
  const texts = [run, part.table, printLsn(part.watermark)].map(quoteLiteral)
  const numbers = [part.source, part.part, part.rows, part.bytes]
  return `INSERT INTO pgshard.reshard_copied (run, "table", watermark, source, part, rows, bytes)
          VALUES (${[...texts, ...numbers].join(', ')})`
}

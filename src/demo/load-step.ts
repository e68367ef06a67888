/** The demo loads its files by the engine of copy-shard and compares the counts. */
import { cpus } from 'node:os'
import { basename } from 'node:path'
import { formatBytes, formatCount, formatRate } from '../cli/render.js'
import type { Cluster } from '../cluster/cluster.js'
import { loadConfig } from '../config/load-config.js'
import { makeCopyOptions } from '../copy/copy-options.js'
import { listInputs } from '../load/input/open-input.js'
import type { LoadReport } from '../load/load-report.js'
import { loadCopy } from '../load/whole/load-copy.js'
import { makeKeyPlacer } from '../sharding/key-placer.js'
import { makeShardMap } from '../sharding/shard-map.js'
import type { MadeFile } from './data-set.js'
import { askShards, DATABASE, type Stage } from './stage.js'

/** Placement of a table as the configuration that we wrote says. */
export function shardMapOf(stage: Stage, database: string) {
  const config = loadConfig({ configPath: stage.configPath, usersPath: stage.usersPath, env: {} })
  return makeShardMap(config.sharding.get(database)!)
}

async function loadFile(stage: Stage, cluster: Cluster, file: MadeFile): Promise<LoadReport> {
  const table = basename(file.path, '.csv')
  const map = shardMapOf(stage, DATABASE)
  let bytes = 0
  let rows = 0
  return loadCopy(
    {
      inputs: await listInputs([file.path]),
      compression: 'auto',
      urls: cluster.servers.map(({ url }) => url),
      table,
      options: makeCopyOptions({ format: 'csv', header: 'match' }),
      jobs: Math.min(2, cpus().length),
      isDryRun: false,
      verifies: true,
      placementOf: ({ schema, name, columns }) => {
        const has = (column: string) => columns.some((one) => one.name === column)
        const kind = map.tableOf(schema, name, has)
        return kind.kind === 'sharded'
          ? { kind: 'sharded', placer: makeKeyPlacer(kind.table) }
          : kind
      },
    },
    {
      clock: stage.clock,
      signal: stage.signal,
      onProgress: (moreBytes, moreRows) => {
        bytes += moreBytes
        rows += moreRows
        stage.story.status(`${table}: ${formatBytes(bytes)}, ${formatCount(rows)} rows`)
      },
    },
  )
}

/** Loads the files one after the other; returns how many rows are on each shard in all. */
export async function loadFiles(
  stage: Stage,
  cluster: Cluster,
  files: readonly MadeFile[],
): Promise<void> {
  const reports: [MadeFile, LoadReport][] = []
  for (const file of files) reports.push([file, await loadFile(stage, cluster, file)])
  const shards = cluster.servers.map(({ shard }) => `shard ${shard}`)
  stage.story.table(
    ['table', 'read', ...shards, 'rejected', 'rate'],
    reports.map(([file, report]) => [
      basename(file.path, '.csv'),
      report.read,
      ...report.shards.map(({ rows }) => rows),
      report.rejected,
      formatRate((file.bytes * 1000) / report.elapsedMs, 'bytes'),
    ]),
  )
  for (const [file, report] of reports) {
    const written = report.shards.reduce((sum, { rows }) => sum + rows, 0)
    const table = basename(file.path, '.csv')
    stage.story.check(
      report.read === file.rows && written === file.rows && report.rejected === 0,
      `${table}: ${formatCount(file.rows)} rows in the file = read = sum of the shards`,
      JSON.stringify(report),
    )
    const counts = await askShards(cluster, `SELECT count(*) AS n FROM ${table}`)
    const found = counts.map(([row]) => Number(row?.['n']))
    stage.story.check(
      found.every((rows, index) => rows === report.shards[index]?.rows),
      `${table}: every server says the same count itself`,
      found.join(', '),
    )
  }
}

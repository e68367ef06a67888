/** `pgshard reshard plan`: what a move would do and what stands in its way; writes nothing. */
import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configOptions } from '../../src/cli/flags.js'
import { formatBytes, formatDuration, renderTable } from '../../src/cli/render.js'
import { moveFlags } from '../../src/cli/reshard-flags.js'
import type { MoveOutline } from '../../src/reshard/outline.js'

export default class ReshardPlan extends BaseCommand {
  static override summary = 'Show what a move would do and what stands in its way.'
  static override description =
    'Looks at both databases, finds all problems at once and says how each is mended. Where one database has all shards of the other and some more, it names the buckets that move to those. Writes nothing. Exits with 5 when the move would be refused.'
  static override examples = [
    '<%= config.bin %> reshard plan --config pgdog.toml --from shop --to shop_new',
  ]
  static override flags = {
    ...moveFlags,
    jobs: Flags.integer({
      description: 'readers of each source shard, as for reshard run',
      default: 2,
      min: 1,
      max: 64,
    }),
  }

  async run(): Promise<MoveOutline> {
    const { flags } = await this.parse(ReshardPlan)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { outlineMove } = await import('../../src/reshard/outline.js')
    const config = loadConfig(configOptions(flags))
    const outline = await outlineMove(config, flags.from, flags.to, flags.jobs)
    const rows = outline.tables.map((table) => [
      table.name,
      table.from,
      table.to,
      table.estimated_rows,
      formatBytes(table.bytes),
    ])
    this.log(
      `${outline.source_shards} → ${outline.target_shards} shards, rows travel in ${outline.format}`,
    )
    this.log(renderTable(['table', 'now', 'then', 'rows (estimate)', 'bytes'], rows))
    if (outline.bucket_moves.length > 0) this.log(bucketTable(outline))
    this.log(estimateLine(outline.estimate))
    for (const { severity, where, what, mend } of outline.problems) {
      this.log(`${severity}: ${where}: ${what}\n    mend: ${mend}`)
    }
    this.log(outline.ready ? 'nothing stands in the way' : 'the move would be refused')
    if (!outline.ready) process.exitCode = 5
    return outline
  }
}

/** What moves where shards are added; all other rows stay as they are. */
function bucketTable({ bucket_moves: moves }: MoveOutline): string {
  const rows = moves.map((move) => [
    move.table,
    move.from,
    move.to,
    `${move.buckets.length} of ${move.of}`,
    move.estimated_rows,
  ])
  return renderTable(['table', 'from shard', 'to shard', 'buckets', 'rows (estimate)'], rows)
}

function estimateLine(estimate: MoveOutline['estimate']): string {
  const parts = [
    `about ${formatBytes(estimate.bytes)} to read`,
    `${formatBytes(estimate.bytes_per_target)} needed on each target`,
    `copy ${formatDuration(estimate.copy_s * 1000)}`,
    `verify ${formatDuration(estimate.verify_s * 1000)}`,
  ]
  const kept = estimate.wal_bytes
  return [...parts, ...(kept === null ? [] : [`${formatBytes(kept)} of WAL kept meanwhile`])].join(
    ', ',
  )
}

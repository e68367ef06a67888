/** `pgshard reshard plan`: what a move would do and what stands in its way; writes nothing. */
import { BaseCommand } from '../../src/cli/base-command.js'
import { configOptions } from '../../src/cli/flags.js'
import { formatBytes, renderTable } from '../../src/cli/render.js'
import { moveFlags } from '../../src/cli/reshard-flags.js'
import type { MoveOutline } from '../../src/reshard/outline.js'

export default class ReshardPlan extends BaseCommand {
  static override summary = 'Show what a move would do and what stands in its way.'
  static override description =
    'Looks at both databases, finds all problems at once and says how each is mended. Writes nothing. Exits with 5 when the move would be refused.'
  static override examples = [
    '<%= config.bin %> reshard plan --config pgdog.toml --from shop --to shop_new',
  ]
  static override flags = moveFlags

  async run(): Promise<MoveOutline> {
    const { flags } = await this.parse(ReshardPlan)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { outlineMove } = await import('../../src/reshard/outline.js')
    const outline = await outlineMove(loadConfig(configOptions(flags)), flags.from, flags.to)
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
    for (const { severity, where, what, mend } of outline.problems) {
      this.log(`${severity}: ${where}: ${what}\n    mend: ${mend}`)
    }
    this.log(outline.ready ? 'nothing stands in the way' : 'the move would be refused')
    if (!outline.ready) process.exitCode = 5
    return outline
  }
}

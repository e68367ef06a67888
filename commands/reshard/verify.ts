/** `pgshard reshard verify`: two databases that nobody writes, compared row by row. */
import { Flags } from '@oclif/core'
import { systemClock } from '../../src/base/clock.js'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configOptions } from '../../src/cli/flags.js'
import { renderTable } from '../../src/cli/render.js'
import { moveFlags } from '../../src/cli/reshard-flags.js'
import type { VerifyReport } from '../../src/reshard/verify/verify.js'

export default class ReshardVerify extends BaseCommand {
  static override summary = 'Compare two databases by content, whatever their number of shards.'
  static override description =
    'Counts and hashes every row on both sides, names keys that differ, and checks that each row of --to stands on its shard. Nobody may write meanwhile. Exits with 7 on any difference.'
  static override examples = ['<%= config.bin %> reshard verify --from shop --to shop_new']
  static override flags = {
    ...moveFlags,
    'progress-file': Flags.string({
      description: 'remember there what is equal, so that the same command goes on after a death',
      helpValue: 'FILE',
    }),
  }

  async run(): Promise<VerifyReport> {
    const { flags } = await this.parse(ReshardVerify)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { sidesOf } = await import('../../src/reshard/buckets/bucket-sides.js')
    const { describeDifference } = await import('../../src/reshard/verify/compare-tables.js')
    const { verifyQuiet } = await import('../../src/reshard/verify/verify.js')
    const config = loadConfig(configOptions(flags))
    const { fileStore } = await import('../../src/reshard/verify/verify-store.js')
    const { from: source, to: target } = sidesOf(config, flags.from, flags.to)
    const path = flags['progress-file']
    const interrupt = this.interruptible('the comparison')
    const report = await verifyQuiet({
      source,
      target,
      clock: systemClock,
      signal: interrupt.soft,
      ...(path === undefined ? {} : { store: fileStore(path, source, target) }),
      onPart: (table, part, of) => {
        if (of > 1) this.note(`${table}: part ${part + 1} of ${of}`)
      },
      onTable: (table) => this.note(`${table.name}: ${table.same ? 'equal' : 'different'}`),
    }).finally(() => interrupt.dispose())
    const rows = report.tables.map((table) => [
      table.name,
      table.sourceRows,
      table.targetRows,
      table.misplaced,
      table.same ? 'equal' : 'different',
    ])
    this.log(renderTable(['table', 'rows from', 'rows to', 'on a wrong shard', 'result'], rows))
    for (const table of report.tables) if (!table.same) this.log(describeDifference(table))
    if (!report.same) process.exitCode = 7
    return report
  }
}

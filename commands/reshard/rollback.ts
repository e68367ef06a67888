/** `pgshard reshard rollback`: back to the old side, with all that was written on the new one. */
import { Flags } from '@oclif/core'
import { systemClock } from '../../src/base/clock.js'
import { openLog } from '../../src/base/log.js'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configOptions } from '../../src/cli/flags.js'
import { formatCount } from '../../src/cli/render.js'
import { moveFlags, switchFlags } from '../../src/cli/reshard-flags.js'
import type { RollbackReport } from '../../src/reshard/rollback.js'

export default class ReshardRollback extends BaseCommand {
  static override summary = 'Switch back to the old shards after a cutover, with every write since.'
  static override description =
    'Applies to the old side what was written on the new one, by the stream that the cutover has armed, compares every row, and switches the proxies back by the same steps as a cutover. May be called again after any death.'
  static override examples = ['<%= config.bin %> reshard rollback --from shop --to shop_new --yes']

  static override flags = {
    ...moveFlags,
    yes: Flags.boolean({ description: 'do it', default: false }),
    proxy: switchFlags.proxy,
    'no-proxy': switchFlags['no-proxy'],
    'budget-ms': switchFlags['budget-ms'],
    'verify-hold-ms': switchFlags['verify-hold-ms'],
    'end-pinned': switchFlags['end-pinned'],
  }

  async run(): Promise<RollbackReport> {
    const { flags } = await this.parse(ReshardRollback)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { rollbackConfigured } = await import('../../src/reshard/configured-rollback.js')
    const config = loadConfig(configOptions(flags))
    const board = this.progress()
    try {
      const request = {
        from: flags.from,
        to: flags.to,
        configPath: flags.config ?? 'pgdog.toml',
        yes: flags.yes,
        proxyUrls: flags.proxy ?? [],
        proxy: !flags['no-proxy'],
        budgetMs: flags['budget-ms'],
        verifyHoldMs: flags['verify-hold-ms'],
        endPinned: flags['end-pinned'],
      }
      const report = await rollbackConfigured(config, request, {
        clock: systemClock,
        log: openLog({ level: this.verbose ? 'info' : 'warn' }),
        listener: { step: (text) => board.note(text) },
        env: process.env,
      })
      board.close()
      this.log(`${formatCount(report.changesApplied)} changes applied to the old side`)
      if (report.verify) this.log(`verified: ${report.verify.tables.length} tables equal`)
      if (report.cutover) this.log(`writes were paused for ${report.cutover.writePauseMs} ms`)
      return report
    } finally {
      board.close()
    }
  }
}

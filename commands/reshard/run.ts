/** `pgshard reshard run`: the whole move. */
import { systemClock } from '../../src/base/clock.js'
import { openLog } from '../../src/base/log.js'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configOptions } from '../../src/cli/flags.js'
import { formatBytes, formatCount, formatDuration, renderTable } from '../../src/cli/render.js'
import { stepsOnBoard } from '../../src/cli/reshard-board.js'
import {
  readStepFlags,
  type StepFlags,
  stopFlag,
  switchFlags,
} from '../../src/cli/reshard-flags.js'
import type { RunRequest } from '../../src/reshard/configured-run.js'
import type { RunReport } from '../../src/reshard/reshard.js'

/** A command that walks a run. */
export abstract class MoveCommand extends BaseCommand {
  /** What the command does with the run. */
  protected abstract asked(
    flags: StepFlags,
  ): Pick<RunRequest, 'mode' | 'stopAfter' | 'keepFollowing'>

  async run(): Promise<RunReport> {
    const { flags } = (await this.parse(this.ctor)) as unknown as { flags: StepFlags }
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { runConfigured } = await import('../../src/reshard/configured-run.js')
    const config = loadConfig(configOptions(flags))
    const interrupt = this.interruptible('the step at hand')
    const board = this.progress()
    try {
      const request: RunRequest = { ...readStepFlags(flags), ...this.asked(flags) }
      const report = await runConfigured(config, request, {
        clock: systemClock,
        log: openLog({ level: this.verbose ? 'info' : 'warn' }),
        listener: stepsOnBoard(board),
        signal: interrupt.soft,
        env: process.env,
      })
      board.close()
      this.#print(report)
      return report
    } finally {
      board.close()
      interrupt.dispose()
    }
  }

  #print(report: RunReport): void {
    const rows = report.tables.map((table) => [table.name, table.rows, formatBytes(table.bytes)])
    if (rows.length > 0) this.log(renderTable(['table', 'rows copied', 'bytes'], rows))
    this.log(`${formatCount(report.changesApplied)} changes applied after the copy`)
    if (report.verify) this.log(`verified: ${report.verify.tables.length} tables equal`)
    for (const broken of report.brokenForeignKeys) this.log(`foreign key does not hold: ${broken}`)
    for (const { where, what, mend } of report.warnings) {
      this.log(`warning: ${where}: ${what}\n    mend: ${mend}`)
    }
    if (report.cutover) {
      this.log(`writes were paused for ${report.cutover.writePauseMs} ms`)
      const { configBackup, wayBack } = report.cutover
      if (configBackup !== null) this.log(`the old configuration is in ${configBackup}`)
      if (wayBack) this.log('the way back is armed: pgshard reshard rollback')
    }
    this.log(`run ${report.run}: ${report.state} in ${formatDuration(report.elapsedMs)}`)
  }
}

export default class ReshardRun extends MoveCommand {
  static override summary = 'Move live data from N to M shards and switch the running proxy over.'
  static override description =
    'Checks both sides, makes the schema, copies all rows in parts, applies what is written meanwhile, compares every row, then pauses the proxy, locks the old tables, applies the rest, exchanges the two databases in the configuration file, reloads the proxy and resumes. Until the switch is decided a failure leaves the old side as it was. A run that ended before its time goes on with reshard resume.'
  static override examples = [
    '<%= config.bin %> reshard run --config pgdog.toml --from shop --to shop_new --yes',
    '<%= config.bin %> reshard run --from shop --to shop_new --yes --stop-after verify',
    '<%= config.bin %> reshard run --from shop --to shop_with_one_more_shard --no-reverse --yes',
  ]

  static override flags = { ...switchFlags, 'stop-after': stopFlag }

  protected override asked(flags: StepFlags): ReturnType<MoveCommand['asked']> {
    return { mode: 'run', stopAfter: flags['stop-after'], keepFollowing: false }
  }
}

/** `pgshard reshard run`: the whole move. */
import { Flags } from '@oclif/core'
import { systemClock } from '../../src/base/clock.js'
import { openLog } from '../../src/base/log.js'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configOptions } from '../../src/cli/flags.js'
import { formatBytes, formatCount, formatDuration, renderTable } from '../../src/cli/render.js'
import { moveFlags } from '../../src/cli/reshard-flags.js'
import type { RunListener, RunReport } from '../../src/reshard/reshard.js'

const stops = ['copy', 'follow', 'verify'] as const

export default class ReshardRun extends BaseCommand {
  static override summary = 'Move live data from N to M shards and switch the running proxy over.'
  static override description =
    'Checks both sides, makes the schema, copies a snapshot, applies what is written meanwhile, compares every row, then pauses the proxy, locks the old tables, applies the rest, exchanges the two databases in the configuration file, reloads the proxy and resumes. Until the proxy has read the new configuration a failure leaves the old side as it was.'
  static override examples = [
    '<%= config.bin %> reshard run --config pgdog.toml --from shop --to shop_new --yes',
    '<%= config.bin %> reshard run --from shop --to shop_new --yes --stop-after verify',
  ]

  static override flags = {
    ...moveFlags,
    yes: Flags.boolean({ description: 'do it', default: false }),
    'stop-after': Flags.option({
      description: 'stop there, with exit 0; the run cannot be taken up again: cleanup removes it',
      options: stops,
    })(),
    proxy: Flags.string({
      description: 'console of the running proxy; default: as the configuration says',
      helpValue: 'URL',
    }),
    'no-proxy': Flags.boolean({
      description: 'no proxy serves this configuration: lock, switch the file, fence',
      exclusive: ['proxy'],
      default: false,
    }),
    jobs: Flags.integer({
      description: 'tables read at once from each source shard',
      default: 2,
      min: 1,
      max: 64,
    }),
    'budget-ms': Flags.integer({
      description: 'longest pause of writes; beyond it the old side goes on',
      default: 5000,
      min: 50,
      helpValue: 'MS',
    }),
    'verify-hold-ms': Flags.integer({
      description: 'how long applying may be held for the snapshots of verify',
      default: 2000,
      min: 50,
      helpValue: 'MS',
    }),
  }

  async run(): Promise<RunReport> {
    const { flags } = await this.parse(ReshardRun)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { runConfigured } = await import('../../src/reshard/configured-run.js')
    const config = loadConfig(configOptions(flags))
    const interrupt = this.interruptible('the step at hand')
    const board = this.progress()
    try {
      const request = {
        from: flags.from,
        to: flags.to,
        configPath: flags.config ?? 'pgdog.toml',
        yes: flags.yes,
        proxyUrl: flags.proxy,
        proxy: !flags['no-proxy'],
        stopAfter: flags['stop-after'],
        jobs: flags.jobs,
        budgetMs: flags['budget-ms'],
        verifyHoldMs: flags['verify-hold-ms'],
      }
      const log = openLog({ level: this.verbose ? 'info' : 'warn' })
      const around = {
        clock: systemClock,
        log,
        listener: listenerOn(board),
        signal: interrupt.soft,
      }
      const report = await runConfigured(config, request, around)
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
    this.log(renderTable(['table', 'rows copied', 'bytes'], rows))
    this.log(`${formatCount(report.changesApplied)} changes applied after the copy`)
    if (report.verify) this.log(`verified: ${report.verify.tables.length} tables equal`)
    for (const broken of report.brokenForeignKeys) this.log(`foreign key does not hold: ${broken}`)
    for (const { where, what, mend } of report.warnings) {
      this.log(`warning: ${where}: ${what}\n    mend: ${mend}`)
    }
    if (report.cutover) {
      this.log(`writes were paused for ${report.cutover.writePauseMs} ms`)
      this.log(`the old configuration is in ${report.cutover.configBackup}`)
    }
    this.log(`run ${report.run}: ${report.state} in ${formatDuration(report.elapsedMs)}`)
  }
}

type Board = ReturnType<BaseCommand['progress']>

function listenerOn(board: Board): RunListener {
  const bars = new Map<string, ReturnType<Board['bar']>>()
  return {
    step: (text) => {
      for (const bar of bars.values()) bar.finish()
      bars.clear()
      board.note(text)
    },
    copied: (table, bytes) => {
      let bar = bars.get(table)
      if (!bar) {
        // The size in pages says little of the bytes that COPY sends: no percentage.
        bar = board.bar({ label: `copy ${table}`, unit: 'bytes' })
        bars.set(table, bar)
      }
      bar.update(bytes)
    },
  }
}

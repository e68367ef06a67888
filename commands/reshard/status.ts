/** `pgshard reshard status`: where the latest run stands. */
import { BaseCommand } from '../../src/cli/base-command.js'
import { configOptions } from '../../src/cli/flags.js'
import { formatBytes, renderTable } from '../../src/cli/render.js'
import { htmlFlag, moveFlags } from '../../src/cli/reshard-flags.js'
import type { StatusReport } from '../../src/reshard/run-status.js'

export default class ReshardStatus extends BaseCommand {
  static override summary = 'Show where the latest move between two databases stands.'
  static override examples = ['<%= config.bin %> reshard status --from shop --to shop_new --json']
  static override flags = { ...moveFlags, html: htmlFlag }

  async run(): Promise<StatusReport> {
    const { flags } = await this.parse(ReshardStatus)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { sidesOf } = await import('../../src/reshard/buckets/bucket-sides.js')
    const { runStatus } = await import('../../src/reshard/run-status.js')
    const config = loadConfig(configOptions(flags))
    const { from, to } = sidesOf(config, flags.from, flags.to)
    const status = await runStatus(from, to)
    if (flags.html !== undefined) {
      const { writeReport } = await import('../../src/reshard/report/write-report.js')
      await writeReport(flags.html, from, to)
    }
    this.log(`run ${status.run}: ${status.state}`)
    if (status.error !== null) this.log(`error: ${status.error}`)
    const rows = status.tables.map((table) => [
      table.name,
      table.state,
      table.rows,
      formatBytes(table.bytes),
    ])
    this.log(renderTable(['table', 'state', 'rows', 'bytes'], rows))
    if (status.lag_bytes !== null) this.log(`behind by ${formatBytes(status.lag_bytes)}`)
    for (const left of status.left) this.log(`still there: ${left}`)
    this.log(`next: ${status.next}`)
    return status
  }
}

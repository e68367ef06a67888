import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configFlags } from '../../src/cli/flags.js'
import { haConfigOf } from '../../src/cli/ha-flags.js'

export default class HaWatch extends BaseCommand {
  static override summary = 'Watch HA groups and switch their routes by heartbeat.'
  static override description =
    'A prober a node writes its heartbeat; a route changes when the current node was silent longer than switch_after and the other was not. Never when both are silent, never back by itself while the standby is healthy. Several may run beside each other.'
  static override examples = [
    '<%= config.bin %> ha watch --config pgdog.toml',
    '<%= config.bin %> ha watch --log-file /var/log/pgshard-ha.log',
  ]

  static override flags = {
    ...configFlags,
    'log-file': Flags.string({ description: 'append the log to this file too', helpValue: 'FILE' }),
  }

  async run(): Promise<object> {
    const { flags } = await this.parse(HaWatch)
    const plan = await haConfigOf(flags)
    const { watchGroups } = await import('../../src/ha/watcher.js')
    const { openLinks } = await import('../../src/ha/links.js')
    const { openHaLog } = await import('../../src/ha/ha-log.js')
    const { systemClock: clock } = await import('../../src/base/clock.js')
    const line = openHaLog({
      file: flags['log-file'],
      echo: (text) => (this.jsonEnabled() ? this.emit({ line: text }) : this.log(text)),
      clock,
    })
    const stop = new AbortController()
    const end = (signal: NodeJS.Signals) => {
      line(`NOTICE: signal ${signal}, ending`)
      stop.abort()
    }
    process.on('SIGINT', end)
    process.on('SIGTERM', end)
    let switches = 0
    try {
      const switched = () => void switches++
      await watchGroups({
        plan,
        open: openLinks(plan, clock),
        clock,
        line,
        signal: stop.signal,
        switched,
      })
    } finally {
      process.off('SIGINT', end)
      process.off('SIGTERM', end)
    }
    return { switches }
  }
}

import { Args, Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configFlags } from '../../src/cli/flags.js'
import { haConfigOf } from '../../src/cli/ha-flags.js'

export default class HaSwitch extends BaseCommand {
  static override summary = 'Change the route of an HA group by hand.'
  static override description =
    'The target must have given a heartbeat. The fencing command runs first; with promote the standby is promoted. Calls in flight on the old node get errors; the next call goes to the new one.'
  static override examples = [
    '<%= config.bin %> ha switch orders --to standby',
    '<%= config.bin %> ha switch orders --to primary --no-fencing',
  ]

  static override args = {
    group: Args.string({ required: true, description: 'name of the group' }),
  }

  static override flags = {
    ...configFlags,
    to: Flags.string({
      required: true,
      options: ['primary', 'standby'],
      description: 'node that it shall be routed to',
    }),
    force: Flags.boolean({
      description: 'do not look at the heartbeat of the target',
      default: false,
    }),
    'no-fencing': Flags.boolean({
      description: 'do not run the fencing command',
      default: false,
    }),
  }

  async run(): Promise<object> {
    const { args, flags } = await this.parse(HaSwitch)
    const plan = await haConfigOf(flags)
    const { switchByHand } = await import('../../src/ha/group-status.js')
    const { systemClock: clock } = await import('../../src/base/clock.js')
    const to = flags.to === 'standby' ? 'standby' : 'primary'
    const { force, 'no-fencing': noFencing } = flags
    const changed = await switchByHand(plan, { name: args.group, to, force, noFencing, clock })
    this.log(
      changed
        ? `group ${args.group} is routed to its ${to}`
        : `group ${args.group} is routed to its ${to} already`,
    )
    return { group: args.group, to, changed }
  }
}

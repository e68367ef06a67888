/** `pgshard reshard follow`: the new side kept up to date. */
import { Flags } from '@oclif/core'
import { stepFlags } from '../../src/cli/reshard-flags.js'
import { MoveCommand } from './run.js'

export default class ReshardFollow extends MoveCommand {
  static override summary =
    'Apply what is written on the old shards to the new ones, until interrupted.'
  static override description =
    'Begins a run, or goes on with the one that is open, and keeps the new shards up to date. Ctrl-C once finishes the batch and stops; reshard resume goes on to verify and cutover.'
  static override examples = [
    '<%= config.bin %> reshard follow --from shop --to shop_new --yes',
    '<%= config.bin %> reshard follow --from shop --to shop_new --yes --until-caught-up',
  ]
  static override flags = {
    ...stepFlags,
    'until-caught-up': Flags.boolean({
      description: 'stop when all that was written before has been applied',
      default: false,
    }),
  }

  protected override asked(
    flags: Parameters<MoveCommand['asked']>[0],
  ): ReturnType<MoveCommand['asked']> {
    return {
      mode: 'continue',
      stopAfter: 'follow',
      keepFollowing: flags['until-caught-up'] !== true,
    }
  }
}

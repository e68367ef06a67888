/** `pgshard reshard resume`: a run taken up again after any death. */
import { stopFlag, switchFlags } from '../../src/cli/reshard-flags.js'
import { MoveCommand } from './run.js'

export default class ReshardResume extends MoveCommand {
  static override summary = 'Go on with a run that ended before its time.'
  static override description =
    'Needs the configuration alone, on any machine: what was done stands in the journal on the first new shard. Steps that were done are not done again; parts of tables that are copied stay.'
  static override examples = ['<%= config.bin %> reshard resume --from shop --to shop_new --yes']
  static override flags = { ...switchFlags, 'stop-after': stopFlag }

  protected override asked(
    flags: Parameters<MoveCommand['asked']>[0],
  ): ReturnType<MoveCommand['asked']> {
    return { mode: 'resume', stopAfter: flags['stop-after'], keepFollowing: false }
  }
}

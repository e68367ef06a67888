/** `pgshard reshard copy`: a move up to the end of its copy. */
import { stepFlags } from '../../src/cli/reshard-flags.js'
import { MoveCommand } from './run.js'

export default class ReshardCopy extends MoveCommand {
  static override summary = 'Copy all rows to the new shards, and stop.'
  static override description =
    'Begins a run, or goes on with the one that is open, until every row and index is on the new shards. The slots on the old ones keep what is written from then on: go on with reshard follow, or resume, soon.'
  static override examples = [
    '<%= config.bin %> reshard copy --from shop --to shop_new --yes --jobs 4',
  ]
  static override flags = stepFlags

  protected override asked(): ReturnType<MoveCommand['asked']> {
    return { mode: 'continue', stopAfter: 'copy', keepFollowing: false }
  }
}

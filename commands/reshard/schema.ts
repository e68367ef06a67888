/** `pgshard reshard schema`: the first step of a move. */
import { stepFlags } from '../../src/cli/reshard-flags.js'
import { MoveCommand } from './run.js'

export default class ReshardSchema extends MoveCommand {
  static override summary = 'Make the tables on the new shards, and stop.'
  static override description =
    'The first step of a run: preflight, and the tables of the source without keys and indexes. reshard copy, or resume, goes on.'
  static override examples = ['<%= config.bin %> reshard schema --from shop --to shop_new --yes']
  static override flags = stepFlags

  protected override asked(): ReturnType<MoveCommand['asked']> {
    return { mode: 'continue', stopAfter: 'schema', keepFollowing: false }
  }
}

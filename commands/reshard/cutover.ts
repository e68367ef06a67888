/** `pgshard reshard cutover`: the switch of a run that has been copied and is followed. */
import { switchFlags } from '../../src/cli/reshard-flags.js'
import { MoveCommand } from './run.js'

export default class ReshardCutover extends MoveCommand {
  static override summary = 'Verify an open run and switch all proxies over.'
  static override description =
    'Goes on with the run from where it stands, to its end: pauses every proxy that serves the database, fences the old tables behind one lock, applies the last changes, sets sequences, and commits a higher epoch on the new side. Before that commit a failure gives the old side back; behind it only forward is possible (reshard resume). A stream back is armed before anybody writes on the new side (reshard rollback), unless --no-reverse.'
  static override examples = [
    '<%= config.bin %> reshard cutover --from shop --to shop_new --yes --budget-ms 1000',
  ]
  static override flags = switchFlags

  protected override asked(): ReturnType<MoveCommand['asked']> {
    return { mode: 'resume', stopAfter: undefined, keepFollowing: false }
  }
}

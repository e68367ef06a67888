/** A limit of the latest run between two databases of a configuration, changed while it works. */
import { engineError } from '../errors/engine-error.js'
import { sidesOf } from './buckets/bucket-sides.js'
import type { MoveConfig } from './configured-side.js'
import { changeSetting } from './guards/sample-store.js'
import { findRun } from './run-status.js'

/** The name of the run. @throws RESHARD_NO_RUN, RESHARD_SETTING */
export async function changeLimit(
  config: MoveConfig,
  { from, to }: { readonly from: string; readonly to: string },
  setting: { readonly name: string; readonly value: string },
): Promise<string> {
  const sides = sidesOf(config, from, to)
  const found = await findRun(sides.from, sides.to)
  if (!found) throw engineError('RESHARD_NO_RUN', { from, to })
  const { run } = found.record
  await changeSetting(found.target, run, setting.name, setting.value)
  return run
}

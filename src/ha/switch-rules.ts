/** When a route changes: ages of two heartbeats against one bound. Pure. */

export interface GroupState {
  readonly current: 'primary' | 'standby'
  /** Milliseconds since the last heartbeat, by the clock of the state database; undefined: there was none. */
  readonly primaryAgeMs: number | undefined
  readonly standbyAgeMs: number | undefined
}

/**
 * `both_failed`: the current node is stale and so is the other; nobody is switched to.
 * `no_fail_back`: the standby was promoted; going back to the old primary would lose what was written since.
 */
export type Decision = 'stay' | 'fail_over' | 'fail_back' | 'both_failed' | 'no_fail_back'

const older = (ageMs: number | undefined, boundMs: number) => ageMs === undefined || ageMs > boundMs
const younger = (ageMs: number | undefined, boundMs: number) =>
  ageMs !== undefined && ageMs < boundMs

/** Both bounds are strict: an age of exactly the bound neither triggers a switch nor qualifies for one. */
export function decide(
  state: GroupState,
  rules: { readonly switchAfterMs: number; readonly promote: boolean },
): Decision {
  const { switchAfterMs } = rules
  const onPrimary = state.current === 'primary'
  const current = onPrimary ? state.primaryAgeMs : state.standbyAgeMs
  const other = onPrimary ? state.standbyAgeMs : state.primaryAgeMs
  if (!older(current, switchAfterMs)) return 'stay'
  if (!younger(other, switchAfterMs)) return 'both_failed'
  if (onPrimary) return 'fail_over'
  return rules.promote ? 'no_fail_back' : 'fail_back'
}

/** Makes a failing conversation smaller while it still fails. */
import type { Scenario, Step } from '../support/arbitraries/session-steps.js'

const MOST_ATTEMPTS = 60

export async function shrink(
  failing: Scenario,
  fails: (candidate: Scenario) => Promise<boolean>,
): Promise<Scenario> {
  let best = failing
  let attempts = 0
  for (let again = true; again; ) {
    again = false
    for (const candidate of smaller(best)) {
      if (++attempts > MOST_ATTEMPTS) return best
      if (!(await fails(candidate))) continue
      best = candidate
      again = true
      break
    }
  }
  return best
}

/** Fewer steps, fewer messages, fewer statements, no startup parameters. */
function* smaller({ startup, steps }: Scenario): Generator<Scenario> {
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at + size <= steps.length; at += size)
      yield { startup, steps: [...steps.slice(0, at), ...steps.slice(at + size)] }
  }
  for (const [at, step] of steps.entries()) {
    for (const less of smallerStep(step)) {
      yield { startup, steps: [...steps.slice(0, at), less, ...steps.slice(at + 1)] }
    }
  }
  for (const name of Object.keys(startup)) {
    // without one the proxy gives its own
    if (name === 'application_name') continue
    const { [name]: _, ...rest } = startup
    yield { startup: rest, steps }
  }
}

function* smallerStep(step: Step): Generator<Step> {
  for (const [at, message] of step.entries()) {
    const isLast = at === step.length - 1
    if (!isLast && message.kind !== 'copy' && step[at + 1]?.kind !== 'copy')
      yield [...step.slice(0, at), ...step.slice(at + 1)]
    if (message.kind !== 'query') continue
    const statements = message.sql.split('; ')
    for (let i = 0; i < statements.length && statements.length > 1; i++) {
      const sql = statements.filter((_, k) => k !== i).join('; ')
      yield [...step.slice(0, at), { kind: 'query', sql }, ...step.slice(at + 1)]
    }
  }
}

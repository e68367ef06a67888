/** `pg_listening_channels()` of a client for whom the proxy listens: its server knows of nothing. */
import { engineError } from '../../errors/engine-error.js'
import type { PlannedStatement } from '../../plan/plan.js'
import { completeFrame, textTableFrames } from '../answers.js'
import type { Step } from '../requests/batch-steps.js'
import type { SessionCore } from '../session-core.js'

const NAME = /\bpg_listening_channels\b/i
const ALONE =
  /^\s*select\s+(?:\*\s+from\s+)?(?:pg_catalog\s*\.\s*)?pg_listening_channels\s*\(\s*\)(?:\s+as\s+([a-z_]\w*))?\s*;?\s*$/i

/** The frames of the answer; undefined when the text does not ask. @throws PUBSUB_CHANNELS when it asks for more than that */
export function answerChannels(
  { listening, transaction }: SessionCore,
  text: string,
): Buffer | undefined {
  // who listens to nothing gets the server's answer, which is the same
  if (!listening || transaction.listening.size === 0) return undefined
  if (transaction.phase === 'failed' || !NAME.test(text)) return undefined
  const asked = ALONE.exec(text)
  if (!asked) throw engineError('PUBSUB_CHANNELS')
  const channels = [...transaction.listening]
  const column = asked[1]?.toLowerCase() ?? 'pg_listening_channels'
  return Buffer.concat([
    textTableFrames(column, channels),
    completeFrame(`SELECT ${channels.length}`),
  ])
}

/** In the extended protocol it is not answered. @throws PUBSUB_CHANNELS, PUBSUB_PREPARE */
export function refuseChannels(core: SessionCore, steps: readonly Step[]): void {
  if (!core.listening) return
  for (const step of steps) {
    const planned = step.kind === 'bind' ? step.statement?.planned : undefined
    if (!planned) continue
    if (core.transaction.listening.size > 0 && NAME.test(planned.text))
      throw engineError('PUBSUB_CHANNELS')
    refusePrepare(core, planned.statements)
  }
}

/** No server knows of the LISTEN that keeps the transaction from being prepared. @throws PUBSUB_PREPARE */
export function refusePrepare(
  { listening, transaction }: SessionCore,
  statements: readonly PlannedStatement[],
): void {
  if (!listening || transaction.channels === transaction.listening) return
  for (const { effects } of statements) {
    const effect = effects.transaction
    if (effect?.kind === 'two_phase' && effect.verb === 'prepare') {
      throw engineError('PUBSUB_PREPARE')
    }
  }
}

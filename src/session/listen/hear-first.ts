/** A request that listens to channels runs as soon as the hub hears them, so that nothing committed behind it is missed. */
import { type EngineError, engineError } from '../../errors/engine-error.js'
import type { SessionCore } from '../session-core.js'
import { Listening } from './listening.js'

export function hearFirst(core: SessionCore, channels: readonly string[], then: () => void): void {
  const source = core.access.listen
  if (!source || channels.length === 0) return then()
  core.listening ??= new Listening(source, core)
  const { listening } = core
  const joined = listening.hear(channels)
  if (!joined) return then()
  listening.isHearing = true
  const ends = (run: () => void) => {
    listening.isHearing = false
    if (listening.isOver) return
    run()
    core.hooks.waitEnded()
  }
  const cancelled = () => core.fail(core.timedOut ?? engineError('SESSION_CANCELLED'))
  joined.then(
    () => ends(core.cancelled ? cancelled : then),
    (error: EngineError) => ends(core.cancelled ? cancelled : () => core.fail(error)),
  )
}

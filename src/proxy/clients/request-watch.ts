/** What is looked at in each statement of a client before it runs: its size, and whether it is written to a log. */
import { createWriteStream, type WriteStream } from 'node:fs'
import type { Clock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { GeneralConfig } from '../../config/keys/config-sections.js'
import { engineError } from '../../errors/engine-error.js'
import { redactLiterals } from '../../routing/redact.js'
import type { RequestWatch } from '../../session/environment.js'

interface WatchSources {
  readonly clock: Clock
  readonly log: Log
  general(): GeneralConfig
}

/** Makes the watch of a client at its login; undefined when nothing is to be looked at. */
export function requestWatches(
  sources: WatchSources,
): (user: string, database: string) => RequestWatch | undefined {
  const files = new Map<string, WriteStream>()
  const fileAt = (path: string): WriteStream => {
    const known = files.get(path)
    if (known) return known
    const file = createWriteStream(path, { flags: 'a', mode: 0o600 })
    file.on('error', (error) =>
      sources.log.warn('query_log cannot be written', { path, reason: error.message }),
    )
    files.set(path, file)
    return file
  }
  return (user, database) => {
    const { querySizeLimit, queryLog, queryLogStdout } = sources.general()
    if (querySizeLimit === undefined && queryLog === undefined && !queryLogStdout) return undefined
    return {
      statement: (text, bytes) => {
        checkSize(sources, bytes, { user, database })
        if (queryLog === undefined && !queryLogStdout) return
        const { logQuerySampleLength } = sources.general()
        const statement = shortened(redactLiterals(text()), logQuerySampleLength)
        const fields = { user, database, statement }
        if (queryLogStdout) sources.log.info('statement', fields)
        if (queryLog === undefined) return
        const at = new Date(sources.clock.nowMs()).toISOString()
        fileAt(queryLog).write(`${JSON.stringify({ at, ...fields })}\n`)
      },
    }
  }
}

const shortened = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length)}…`

function checkSize(
  { general, log }: WatchSources,
  bytes: number,
  client: { user: string; database: string },
): void {
  const { querySizeLimit, querySizeLimitAction } = general()
  if (querySizeLimit === undefined || bytes <= querySizeLimit) return
  if (querySizeLimitAction === 'block')
    throw engineError('SESSION_STATEMENT_SIZE', { bytes, limit: querySizeLimit })
  log.warn('a statement is longer than query_size_limit', {
    ...client,
    bytes,
    limit: querySizeLimit,
  })
}

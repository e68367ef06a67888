/** Credentials that somebody gives out for a while: fetched when they are needed, again before they expire, one fetch at a time. */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import type { CredentialSource, ServerCredentials } from '../server-target.js'

export interface Lease extends ServerCredentials {
  /** From now. */
  readonly lifeMs: number
}

export interface CredentialProvider {
  /** For messages and for telling sources apart; no secret. */
  readonly name: string
  /** Part of their life after which new ones are fetched, in percent. */
  readonly refreshPercent: number
  /** @throws what went wrong, without a secret */
  fetch(): Promise<Lease>
}

interface Kept {
  readonly credentials: ServerCredentials
  readonly refreshAtMs: number
  readonly expiresAtMs: number
}

export function keepCredentials(provider: CredentialProvider, clock: Clock): CredentialSource {
  let kept: Kept | undefined
  let running: Promise<Kept> | undefined
  const refresh = (): Promise<Kept> => {
    running ??= fetchNow(provider, clock)
      .then((fetched) => {
        kept = fetched
        return fetched
      })
      .finally(() => {
        running = undefined
      })
    return running
  }
  return {
    name: provider.name,
    get: async () => {
      const nowMs = clock.monotonicMs()
      if (!kept || nowMs >= kept.expiresAtMs) return (await refresh()).credentials
      // The old ones still do while new ones are on their way, and when they do not come.
      if (nowMs >= kept.refreshAtMs) refresh().catch(() => undefined)
      return kept.credentials
    },
  }
}

async function fetchNow(provider: CredentialProvider, clock: Clock): Promise<Kept> {
  try {
    const { lifeMs, ...credentials } = await provider.fetch()
    const nowMs = clock.monotonicMs()
    const refreshAtMs = nowMs + (lifeMs * provider.refreshPercent) / 100
    return { credentials, refreshAtMs, expiresAtMs: nowMs + lifeMs }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw engineError('SERVER_CREDENTIALS_FAILED', { source: provider.name, reason })
  }
}

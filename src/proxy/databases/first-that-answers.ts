/** Servers that can stand in for one another, asked in turn. */
import { engineError } from '../../errors/engine-error.js'
import type { ServerTarget } from '../../server/server-target.js'

/**
 * What `ask` gives for the first target that it does not throw for. @throws its last error, or one that `isFinal` says
 * the others would only repeat; PROXY_NO_DATABASE without targets
 */
export async function firstThatAnswers<T>(
  database: string,
  targets: Iterable<ServerTarget>,
  ask: (target: ServerTarget) => Promise<T>,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<T> {
  let failure: unknown = engineError('PROXY_NO_DATABASE', { database })
  for (const target of targets) {
    try {
      return await ask(target)
    } catch (error) {
      failure = error
      if (isFinal(error)) break
    }
  }
  throw failure
}

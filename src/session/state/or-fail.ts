/** What goes on later in a request: an error that it throws ends the request, as one thrown at once would. */
import { toEngineError } from '../../errors/engine-error.js'
import type { SessionCore } from '../session-core.js'

export function orFail(core: Pick<SessionCore, 'fail'>, run: () => void): void {
  try {
    run()
  } catch (error) {
    core.fail(toEngineError(error))
  }
}

/** A RELOAD as the log and the console hear of it: of one process, or of all workers. */
import type { Log } from '../base/log.js'
import type { LoadedConfig } from '../config/loaded-config.js'
import { engineError, toEngineError } from '../errors/engine-error.js'

/** Reads the configuration again and gives it to `use`. @throws ADMIN_RELOAD_FAILED */
export async function reportedReload<T>(
  { loadAgain, log }: { readonly loadAgain: () => LoadedConfig; readonly log: Log },
  use: (config: LoadedConfig) => Promise<T>,
): Promise<T> {
  try {
    const config = loadAgain()
    const result = await use(config)
    for (const warning of config.warnings) log.warn(warning)
    log.info('configuration reloaded', { files: config.files })
    return result
  } catch (error) {
    const { message, detail } = toEngineError(error)
    log.error('reload failed, the old configuration stays', { error: message, detail })
    const reason = detail === undefined ? message : `${message}: ${detail}`
    throw engineError('ADMIN_RELOAD_FAILED', { reason }, { cause: error })
  }
}

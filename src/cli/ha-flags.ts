/** What the commands of `ha` share: the groups of a configuration. */
import type { HaConfig } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import { configOptions } from './flags.js'

/** @throws HA_NOT_CONFIGURED, and what `loadConfig` throws */
export async function haConfigOf(flags: Parameters<typeof configOptions>[0]): Promise<HaConfig> {
  const { loadConfig } = await import('../config/load-config.js')
  const { ha } = loadConfig(configOptions(flags))
  if (ha === undefined) throw engineError('HA_NOT_CONFIGURED')
  return ha
}

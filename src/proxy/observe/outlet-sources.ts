/** What those who look at `serve` from outside PostgreSQL are shown. */
import type { ProxyView } from '../../admin/proxy-view.js'
import type { Clock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { LoadedConfig } from '../../config/loaded-config.js'

export interface OutletSources {
  readonly clock: Clock
  readonly log: Log
  /** In force now; ports count as they were at the start. */
  config(): LoadedConfig
  look(): ProxyView | Promise<ProxyView>
  /** Tells whoever started us where the page is. */
  announce(line: string): void
}

/** The processes of `serve --workers`. */
import type { CatalogueEntry } from '../catalogue-entry.js'

export const workerErrors = {
  WORKER_GONE: {
    sqlstate: '57P01',
    message: 'worker {worker} ended before it had answered',
    hint: 'it is replaced; SHOW WORKERS says by which process',
    retry: 'unknown',
  },
  WORKERS_TOO_MANY: {
    sqlstate: '53000',
    message: '{limit} cannot be shared by {workers} workers',
    hint: 'raise it, or start the proxy anew with fewer workers',
    retry: 'safe',
  },
} as const satisfies Record<string, CatalogueEntry>

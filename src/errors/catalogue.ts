/** Every error that pgshard can report: code → SQLSTATE, message, hint. Codes are never reused or changed. `docs/errors.md` is written from here. */
import { authErrors } from './catalogue/auth.js'
import { benchErrors } from './catalogue/bench.js'
import { clientErrors } from './catalogue/client.js'
import { clusterErrors } from './catalogue/cluster.js'
import { configErrors } from './catalogue/config.js'
import { connectErrors } from './catalogue/connect.js'
import { copyErrors } from './catalogue/copy.js'
import { gatherErrors } from './catalogue/gather.js'
import { haErrors } from './catalogue/ha.js'
import { mergeErrors } from './catalogue/merge.js'
import { poolErrors } from './catalogue/pool.js'
import { pubsubErrors } from './catalogue/pubsub.js'
import { replicationErrors } from './catalogue/replication.js'
import { reshardErrors } from './catalogue/reshard.js'
import { routingErrors } from './catalogue/routing.js'
import { sessionErrors } from './catalogue/session.js'
import { setupErrors } from './catalogue/setup.js'
import { twoPhaseErrors } from './catalogue/two-phase.js'
import { wireErrors } from './catalogue/wire.js'
import { workerErrors } from './catalogue/workers.js'
import type { CatalogueEntry } from './catalogue-entry.js'

export type { CatalogueEntry }

const general = {
  INTERNAL: {
    sqlstate: 'XX000',
    message: 'internal error: {message}',
    hint: 'please report this with the output of --verbose',
    exit: 1,
  },
  USAGE: { sqlstate: '22023', message: '{message}', exit: 2 },
  FILE_MISSING: {
    sqlstate: '58P01',
    message: 'could not open file "{path}": {reason}',
    hint: 'check the path and that this user may read it',
    exit: 3,
  },
  INTERRUPTED: { sqlstate: '57014', message: '{what} was interrupted', exit: 130 },
} as const satisfies Record<string, CatalogueEntry>

export const catalogue = {
  ...general,
  ...wireErrors,
  ...authErrors,
  ...configErrors,
  ...connectErrors,
  ...poolErrors,
  ...sessionErrors,
  ...pubsubErrors,
  ...routingErrors,
  ...copyErrors,
  ...gatherErrors,
  ...haErrors,
  ...mergeErrors,
  ...replicationErrors,
  ...reshardErrors,
  ...benchErrors,
  ...clientErrors,
  ...clusterErrors,
  ...setupErrors,
  ...twoPhaseErrors,
  ...workerErrors,
} as const

export type ErrorCode = keyof typeof catalogue

type Names<T extends string> = T extends `${string}{${infer N}}${infer Rest}`
  ? N | Names<Rest>
  : never
type Text<C extends ErrorCode, F extends string> =
  (typeof catalogue)[C] extends Record<F, infer T> ? (T extends string ? T : never) : never

/** The braces in the message and hint of an error, each a string or number. */
export type ErrorParameters<C extends ErrorCode> = {
  [N in Names<Text<C, 'message'>> | Names<Text<C, 'hint'>>]: string | number
}

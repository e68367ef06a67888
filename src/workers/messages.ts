/** What the primary and its workers say to each other. Plain data; configurations hold secrets, so messages are never logged. */
import type { PoolSelector } from '../admin/admin-command.js'
import type { ViewSnapshot } from '../admin/merge-views.js'
import type { PoolPlaceView, WorkerView } from '../admin/proxy-view.js'
import type { LogLevel } from '../base/log.js'
import type { LoadedConfig } from '../config/loaded-config.js'
import type { RemoteError } from './remote-error.js'

/** What a worker is started with. */
export interface WorkerStart {
  readonly number: number
  readonly count: number
  /** Its share of every limit. */
  readonly config: LoadedConfig
  readonly version: string
  readonly logLevel?: LogLevel
  readonly logFormat?: 'text' | 'json'
  readonly isTraced: boolean
  readonly keySecret: Buffer
  readonly saltSecret: Buffer
  /** Commands that still hold, such as PAUSE. */
  readonly orders: readonly Order[]
  /** Where clients connect to. */
  readonly host: string
  readonly port: number
  /** The worker listens there itself, and the kernel deals connections out. */
  readonly listens: boolean
}

type Place = Omit<PoolPlaceView, 'worker' | 'poolId'>

/** Commands about one pool, or all. */
export type PoolVerb = 'ban' | 'unban' | 'healthcheck'

/** A command of the console, as every worker carries it out. */
export type Order =
  | { readonly verb: 'pause' | 'resume'; readonly pools: PoolSelector }
  | { readonly verb: 'reconnect'; readonly pools: PoolSelector }
  | { readonly verb: 'kill' | 'wait_close'; readonly database: string | undefined }
  | { readonly verb: 'maintenance'; readonly isOn: boolean; readonly database: string | undefined }
  | { readonly verb: 'disable' | 'enable'; readonly database: string }
  | { readonly verb: 'suspend' }
  | { readonly verb: 'reset'; readonly what: 'prepared' | 'query_cache' }
  | { readonly verb: 'kill_client'; readonly id: number }
  /** Without a place: all pools. */
  | { readonly verb: 'ban' | 'unban'; readonly place?: Place }
  | { readonly verb: 'healthcheck'; readonly place?: Place }

/** A command of the console, as it is given. */
export type ConsoleOrder =
  | Exclude<Order, { verb: 'ban' | 'unban' } | { verb: 'healthcheck' }>
  | { readonly verb: PoolVerb; readonly poolId: number | undefined }
  | { readonly verb: 'reload' | 'force_reload' | 'shutdown' | 'restart' }
  | { readonly verb: 'set'; readonly name: string; readonly value: string }

export interface ToWorker {
  tell:
    | { readonly kind: 'start'; readonly start: WorkerStart }
    /** With a connection; it is answered by `taken`. */
    | { readonly kind: 'connection'; readonly n: number }
    | { readonly kind: 'shutdown'; readonly now: boolean }
    | { readonly kind: 'schema'; readonly database: string }
  ask: /** Answered as soon as the event loop turns. */
    | { readonly kind: 'beat' }
    | { readonly kind: 'look' }
    | { readonly kind: 'cancel'; readonly processId: number; readonly key: Buffer }
    | { readonly kind: 'order'; readonly order: Order }
    | { readonly kind: 'prepare'; readonly config: LoadedConfig }
    | { readonly kind: 'commit' | 'abort' }
}

export interface ToPrimary {
  tell:
    | { readonly kind: 'ready' }
    | { readonly kind: 'failed'; readonly error: RemoteError }
    | { readonly kind: 'taken'; readonly n: number; readonly isTaken: boolean }
    /** So many of the connections that it was given are closed. */
    | { readonly kind: 'left'; readonly count: number }
    | { readonly kind: 'ended'; readonly isDrained: boolean }
    | { readonly kind: 'schema'; readonly database: string }
  ask:
    | { readonly kind: 'look' }
    | {
        readonly kind: 'cancel'
        readonly worker: number
        readonly processId: number
        readonly key: Buffer
      }
    | { readonly kind: 'order'; readonly order: ConsoleOrder }
}

/** Answer to `look` of a worker. */
export interface FleetLook {
  readonly snapshots: readonly ViewSnapshot[]
  readonly workers: readonly WorkerView[]
}

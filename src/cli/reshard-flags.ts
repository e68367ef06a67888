/** Flags that the reshard commands share. */
import { Flags } from '@oclif/core'
import { engineError } from '../errors/engine-error.js'
import { configFlags } from './flags.js'

export const moveFlags = {
  config: configFlags.config,
  users: configFlags.users,
  from: Flags.string({
    description: 'database of the configuration to move from',
    required: true,
    helpValue: 'NAME',
  }),
  to: Flags.string({
    description: 'database of the configuration to move to',
    required: true,
    helpValue: 'NAME',
  }),
} as const

export const htmlFlag = Flags.string({
  description: 'write a report there: tables, rates, lag and the pause, as one page',
  helpValue: 'FILE',
})

/** Flags of the commands that do steps of a move. */
export const stepFlags = {
  ...moveFlags,
  yes: Flags.boolean({ description: 'do it', default: false }),
  jobs: Flags.integer({
    description:
      'parts of tables read at once from each source shard, and indexes made at once on each target',
    default: 2,
    min: 1,
    max: 64,
  }),
  'max-rate': Flags.custom<number>({
    description: 'most bytes a second that the copy reads, as 50MB; 0: no bound',
    default: 0,
    helpValue: 'BYTES',
    parse: async (text) => readSize(text),
  })(),
  'max-wal-kept': Flags.string({
    description:
      'most WAL that our slots may make a source keep, as 64GB, or off; from three quarters of it on the copy waits (default 64GB)',
    helpValue: 'BYTES',
  }),
  'wal-action': Flags.option({
    description:
      'at --max-wal-kept: abort gives the run up and frees the source, pause only lets the copy wait (default abort)',
    options: ['abort', 'pause'] as const,
  })(),
  'max-source-latency': Flags.string({
    description:
      'the copy waits while a source answers slower than this, as 200ms, or off (default off)',
    helpValue: 'TIME',
  }),
  'max-replica-lag': Flags.string({
    description:
      'the copy waits while a standby of a source is further behind, as 10s, or off (default off)',
    helpValue: 'TIME',
  }),
  'part-size': Flags.custom<number>({
    description: 'tables larger than this are copied in parts of about this size (default 128MB)',
    helpValue: 'BYTES',
    parse: async (text) => readSize(text),
  })(),
} as const

/** Flags of the commands that may come to verify and cutover. */
export const switchFlags = {
  ...stepFlags,
  html: htmlFlag,
  proxy: Flags.string({
    description:
      'console of a running proxy, may be given again; default: as the configuration says. Those that have registered are found by themselves',
    helpValue: 'URL',
    multiple: true,
  }),
  'no-proxy': Flags.boolean({
    description: 'no proxy serves this configuration: lock, switch the file, fence',
    exclusive: ['proxy'],
    default: false,
  }),
  'budget-ms': Flags.integer({
    description: 'longest pause of writes; beyond it the old side goes on',
    default: 5000,
    min: 50,
    helpValue: 'MS',
  }),
  'end-pinned': Flags.boolean({
    description: 'end clients that keep their servers (session mode, LISTEN, temporary tables)',
    default: false,
  }),
  reverse: Flags.boolean({
    description:
      'arm a stream back to the old side before writes go on, and refuse the cutover where that is not possible; with --no-reverse none is armed, and there is no rollback',
    allowNo: true,
    default: true,
  }),
  'verify-hold-ms': Flags.integer({
    description: 'how long applying may be held for the snapshots of verify',
    default: 2000,
    min: 50,
    helpValue: 'MS',
  }),
} as const

export const stopFlag = Flags.option({
  description: 'stop there, with exit 0; reshard resume goes on',
  options: ['schema', 'copy', 'follow', 'verify'] as const,
})()

const units: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9 }

/** @throws USAGE */
function readSize(text: string): number {
  const parts = /^(\d+(?:\.\d+)?)\s*([kmg]?)b?$/i.exec(text.trim())
  if (!parts) throw engineError('USAGE', { message: `"${text}" is no number of bytes; write 50MB` })
  return Math.floor(Number(parts[1]) * (units[(parts[2] ?? '').toLowerCase()] as number))
}

/** Flags of all commands that walk a run; what one does not take is undefined. */
export interface StepFlags {
  readonly config?: string
  readonly users?: string
  readonly from: string
  readonly to: string
  readonly yes: boolean
  readonly jobs: number
  readonly html?: string
  readonly 'max-rate'?: number
  readonly 'max-wal-kept'?: string
  readonly 'wal-action'?: string
  readonly 'max-source-latency'?: string
  readonly 'max-replica-lag'?: string
  readonly 'part-size'?: number
  readonly proxy?: readonly string[]
  readonly 'end-pinned'?: boolean
  readonly reverse?: boolean
  readonly 'no-proxy'?: boolean
  readonly 'budget-ms'?: number
  readonly 'verify-hold-ms'?: number
  readonly 'stop-after'?: 'schema' | 'copy' | 'follow' | 'verify'
  readonly 'until-caught-up'?: boolean
}

/** What the engine is asked for, defaults filled in. */
export const readStepFlags = (flags: StepFlags) => ({
  from: flags.from,
  to: flags.to,
  configPath: flags.config ?? 'pgdog.toml',
  htmlPath: flags.html,
  yes: flags.yes,
  proxyUrls: flags.proxy ?? [],
  proxy: flags['no-proxy'] !== true,
  jobs: flags.jobs,
  maxRate: flags['max-rate'] ?? 0,
  limits: {
    max_wal_kept: flags['max-wal-kept'],
    wal_action: flags['wal-action'],
    max_source_latency: flags['max-source-latency'],
    max_replica_lag: flags['max-replica-lag'],
  },
  partBytes: flags['part-size'],
  budgetMs: flags['budget-ms'] ?? 5000,
  verifyHoldMs: flags['verify-hold-ms'] ?? 2000,
  endPinned: flags['end-pinned'] ?? false,
  wayBack: flags.reverse,
})

/** The flags of `copy-shard`, and what cannot go together beyond what oclif is told: a flag without effect is refused. */
import { resolve } from 'node:path'
import { engineError } from '../../errors/engine-error.js'
import type { Compression, CopyInput } from '../input/open-input.js'
import { formatOf } from './load-options.js'

/** The flags as oclif gives them; absent ones are undefined. */
export interface CopyShardFlags {
  /** Absent with --format pg_dump, whose blocks name theirs. */
  readonly table?: string | undefined
  readonly columns?: readonly string[] | undefined
  readonly format?: string | undefined
  readonly header: boolean
  readonly delimiter?: string | undefined
  readonly quote?: string | undefined
  readonly escape?: string | undefined
  readonly null?: string | undefined
  readonly encoding?: string | undefined
  readonly 'force-null'?: readonly string[] | undefined
  readonly 'force-not-null'?: readonly string[] | undefined
  readonly compression: Compression
  readonly jobs: number
  readonly 'max-rate'?: string | undefined
  readonly 'dry-run': boolean
  readonly verify: boolean
  readonly resume: boolean
  readonly 'single-transaction': boolean
  readonly 'on-error': string
  readonly 'reject-file'?: string | undefined
  readonly 'batch-size'?: string | undefined
  readonly out?: string | undefined
  readonly 'order-by'?: string | undefined
  readonly 'sharding-key'?: string | undefined
  readonly 'key-type'?: string | undefined
  readonly map?: string | undefined
}

const usage = (message: string) => engineError('USAGE', { message })

/** @throws USAGE */
export function checkFlags(flags: CopyShardFlags): void {
  const rejects = flags['on-error'] === 'reject'
  const rejectPath = flags['reject-file']
  if (!rejects && rejectPath !== undefined) throw usage('--reject-file needs --on-error reject')
  if (rejects && rejectPath === undefined) throw usage('--on-error reject needs --reject-file')
  for (const whole of ['single-transaction', 'dry-run'] as const) {
    if (!flags[whole]) continue
    if (rejects) throw usage(`--on-error reject is not for --${whole}`)
    if (flags.jobs > 1) throw usage(`--${whole} takes one job`)
  }
}

/**
 * @throws USAGE for a file that is named twice (its rows would be, too), files whose names tell of several formats, and a
 * reject file that is an input
 */
export function checkInputs(inputs: readonly CopyInput[], flags: CopyShardFlags): void {
  const names = inputs.map(({ name, file }) => (file === undefined ? name : resolve(file.path)))
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw usage(`"${twice}" is named twice`)
  const formats = new Set(inputs.map(({ name }) => formatOf(name)))
  if (flags.format === undefined && formats.size > 1)
    throw usage(`the names of the files tell of ${[...formats].join(' and ')}: give --format`)
  const rejectPath = flags['reject-file']
  if (rejectPath === undefined) return
  for (const path of [rejectPath, `${rejectPath}.reasons`])
    if (names.includes(resolve(path))) throw usage(`--reject-file would overwrite "${path}"`)
}

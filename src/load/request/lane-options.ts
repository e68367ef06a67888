/** What all inputs of a load have in common. */

import type { CopyOptions } from '../../copy/copy-options.js'
import type { KeyPlacer } from '../../sharding/key-placer.js'
import type { CopyTable } from '../copy-target.js'
import type { Compression } from '../input/open-input.js'

export interface LaneOptions {
  readonly table: CopyTable
  readonly options: CopyOptions
  /** Absent: the header names them, or all columns of the table. */
  readonly columns?: readonly string[]
  readonly compression: Compression
  readonly shardCount: number
  readonly placer?: KeyPlacer
  readonly signal: AbortSignal
  /** After `bytes` were read; a promise when the next must wait. */
  readonly pace: (bytes: number) => Promise<void> | undefined
  readonly onProgress: (readBytes: number, rows: number) => void
}

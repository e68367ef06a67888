/** The description of a load by which it is found again: table, inputs, dialect, map, and the parts that it is split into. */
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import type { CopyOptions } from '../../copy/copy-options.js'
import type { InputIdentity } from '../input/input-identity.js'
import type { LoadPlacement } from '../request/load-placement.js'

/** A stretch of one input that is loaded on its own. */
export interface JobPart {
  readonly part: number
  /** Index of the input. */
  readonly input: number
  readonly identity: InputIdentity
  /** Bytes of the file; the whole file from 0 to −1. */
  readonly start: number
  readonly end: number
  /** Lines of the file before it. */
  readonly linesBefore: number
}

export interface CopyJob {
  readonly id: string
  /** As messages name it. */
  readonly table: string
  readonly options: string
  readonly mapHash: string
  readonly parts: readonly JobPart[]
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Names the job by what the user would start again: the same files into the same table. */
export const jobId = (table: string, inputs: readonly InputIdentity[]): string =>
  hash(
    [table, ...inputs.map(({ name, size }) => (size === undefined ? name : resolve(name)))].join(
      '\0',
    ),
  ).slice(0, 16)

/** Where rows go, as one hash: another map, key or number of shards gives another. */
export function mapHashOf(placement: LoadPlacement, shardCount: number): string {
  const rule = placement.kind === 'sharded' ? placement.placer.table : placement
  return hash(JSON.stringify({ rule, shardCount })).slice(0, 32)
}

/** What decides how bytes become rows, as JSON with a fixed order of keys. */
export function optionsText(options: CopyOptions, columns: readonly string[] | undefined): string {
  const { format, header, delimiter, quote, encoding, forceNull, forceNotNull } = options
  return JSON.stringify({
    columns: columns ?? null,
    delimiter,
    encoding: encoding ?? null,
    escape: options.escape,
    forceNotNull,
    forceNull,
    format,
    header,
    null: options.nullMark.toString('latin1'),
    quote,
  })
}

/**
 * Loads files in batches that are committed as they are done, with checkpoints beside the rows: what has been committed stays
 * when the rest fails, and `resume` goes on behind it, shard by shard.
 */
import { Readable } from 'node:stream'
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { tableSql } from '../copy-target.js'
import { findRanges } from '../input/find-ranges.js'
import { type InputIdentity, identify } from '../input/input-identity.js'
import { type CopyInput, readChunks } from '../input/open-input.js'
import { fieldCounter } from '../input/read-header.js'
import { endingOf } from '../load-failure.js'
import type { LoadReport } from '../load-report.js'
import type { LaneOptions } from '../request/lane-options.js'
import type { LoadRequest, LoadWatch } from '../request/load-request.js'
import {
  countRows,
  findSetting,
  type LoadSetting,
  laneOf,
  verifyCounts,
} from '../request/load-setting.js'
import { BatchShard } from '../shards/batch-shard.js'
import { ShardClients } from '../shards/shard-clients.js'
import { Checkpoints, type JobStart } from './checkpoints.js'
import { type CopyJob, type JobPart, jobId, mapHashOf, optionsText } from './copy-job.js'
import { PartLoad } from './load-part.js'
import { BINARY_HEAD, BINARY_TAIL, columnsOf, openPart } from './part-data.js'
import { RejectFile } from './reject-file.js'

export interface BatchRequest extends LoadRequest {
  readonly isResume: boolean
  /** Where rows at fault go; absent: the first one ends the load. */
  readonly rejectPath?: string
  readonly batchBytes: number
  /** Known before the table is: its rows may go to any of the shards. */
  readonly usesEveryShard: boolean
}

export interface BatchWatch extends LoadWatch {
  /** A line for the user. */
  note(line: string): void
}

/** @throws the first failure; exit code 6 when rows stay committed */
export async function loadBatches(request: BatchRequest, watch: BatchWatch): Promise<LoadReport> {
  const startedMs = watch.clock.monotonicMs()
  const clients = new ShardClients()
  if (request.usesEveryShard) clients.expect(request.urls)
  try {
    const setting = await findSetting(request, clients)
    clients.expect(setting.urls)
    const load = new BatchLoad(request, watch, setting, clients)
    await load.run()
    return {
      ...load.totals(),
      elapsedMs: watch.clock.monotonicMs() - startedMs,
      isReference: setting.placement.kind === 'reference',
      isDryRun: false,
    }
  } finally {
    await clients.close()
  }
}

class BatchLoad {
  readonly #request: BatchRequest
  readonly #watch: BatchWatch
  readonly #setting: LoadSetting
  readonly #clients: ShardClients
  readonly #lane: LaneOptions
  readonly #stop = new AbortController()
  readonly #rows: number[]
  readonly #bytes: number[]
  #inputs: CopyInput[] = []
  #rejects: RejectFile | undefined
  #read = 0

  constructor(
    request: BatchRequest,
    watch: BatchWatch,
    setting: LoadSetting,
    clients: ShardClients,
  ) {
    this.#request = request
    this.#watch = watch
    this.#setting = setting
    this.#clients = clients
    this.#rows = setting.targets.map(() => 0)
    this.#bytes = setting.targets.map(() => 0)
    this.#lane = laneOf(request, watch, setting, this.#stop.signal)
  }

  async run(): Promise<void> {
    const { isResume, rejectPath } = this.#request
    const { table } = this.#setting
    const job = await this.#describe()
    const checkpoints = new Checkpoints(this.#clients, this.#setting.urls, job)
    const start = await checkpoints.start(isResume)
    if (start.isDone) {
      this.#watch.note('all rows are loaded already; only checkpoints were left')
      return await checkpoints.finish()
    }
    if (start.made > 0)
      this.#watch.note(
        `made table pgshard.copy_checkpoint on ${start.made} shards; it goes when the load is complete`,
      )
    const before = this.#request.verifies ? await this.#countOthers(start) : undefined
    this.#addEarlier(start)
    try {
      if (rejectPath !== undefined) this.#rejects = await this.#openRejects(rejectPath, start)
      await this.#fill(checkpoints, start)
    } catch (error) {
      const committed = this.#rows.reduce((sum, rows) => sum + rows, 0)
      // Where another run has moved them, the checkpoints are that run's.
      if (committed === 0 && toEngineError(error).code !== 'COPY_CHECKPOINT_MOVED')
        await checkpoints.forget().catch(() => undefined)
      throw endingOf(error, committed, table.name)
    } finally {
      this.#rejects?.close(this.#request.options.format === 'binary' ? BINARY_TAIL : undefined)
    }
    await checkpoints.finish()
    if (before !== undefined) await this.#verify(before)
  }

  totals(): Omit<LoadReport, 'elapsedMs' | 'isReference' | 'isDryRun'> {
    const { placement, targets } = this.#setting
    const shards = targets.map((shard, index) => ({
      shard,
      rows: this.#rows[index] as number,
      bytes: this.#bytes[index] as number,
    }))
    const written =
      placement.kind === 'reference'
        ? (shards[0]?.rows ?? 0)
        : shards.reduce((sum, { rows }) => sum + rows, 0)
    const read = Math.max(this.#read, written)
    const { rejectPath } = this.#request
    return {
      read,
      written,
      rejected: read - written,
      shards,
      ...(rejectPath === undefined
        ? {}
        : { rejectedTo: rejectPath, inRejectFile: this.#rejects?.count ?? 0 }),
    }
  }

  async #describe(): Promise<CopyJob> {
    const { columns, options, urls } = this.#request
    const { table, placement } = this.#setting
    const found = await Promise.all(this.#request.inputs.map((input) => identify(input)))
    this.#inputs = found.map(({ input }) => input)
    const identities = found.map(({ identity }) => identity)
    return {
      id: jobId(tableSql(table), identities),
      table: tableSql(table),
      options: optionsText(options, columns),
      mapHash: mapHashOf(placement, urls.length),
      parts: await this.#parts(identities),
    }
  }

  async #parts(identities: readonly InputIdentity[]): Promise<JobPart[]> {
    const { compression, isResume, jobs, options } = this.#request
    const parts: Omit<JobPart, 'part'>[] = []
    const each = Math.floor(jobs / identities.length)
    for (const [index, identity] of identities.entries()) {
      const input = this.#inputs[index] as CopyInput
      const mayCut = each > 1 && !isResume && compression !== 'gzip' && compression !== 'zstd'
      const ranges = mayCut
        ? await findRanges(input, options, each, {
            columns: await this.#columnsOf(input),
            serverMajor: this.#setting.table.serverMajor,
          })
        : undefined
      for (const range of ranges ?? [{ start: 0, end: -1, linesBefore: 0 }])
        parts.push({ input: index, identity, ...range })
    }
    return parts.map((part, number) => ({ part: number, ...part }))
  }

  async #columnsOf(input: CopyInput): Promise<readonly string[]> {
    const { sample } = input
    // A stream can be read but once; its beginning is kept.
    const from =
      sample === undefined ? input : { name: input.name, open: () => Readable.from([sample]) }
    const chunksOf = readChunks(from, this.#lane.compression, () => undefined)
    const { columns, chunks } = await columnsOf(input, this.#lane, chunksOf)
    await chunks.return(undefined)
    return columns
  }

  #addEarlier(start: JobStart): void {
    for (const { written } of start.states)
      for (const [shard, rows] of written.entries())
        this.#rows[shard] = (this.#rows[shard] as number) + rows
  }

  async #openRejects(path: string, start: JobStart): Promise<RejectFile> {
    const { options } = this.#request
    const isBinary = options.format === 'binary'
    const names =
      options.header === 'none' ? undefined : await this.#columnsOf(this.#inputs[0] as CopyInput)
    const head = isBinary ? BINARY_HEAD : Buffer.from(headerLine(names, options))
    const keeps = (part: number, row: number, shard: number) =>
      row <= (start.states[part]?.lastRow[Math.max(shard, 0)] ?? 0)
    const countFields = await fieldCounter(options)
    return new RejectFile({
      path,
      head,
      ...(countFields === undefined ? {} : { countFields }),
      hasLines: !isBinary,
      ...(this.#request.isResume ? { keeps } : {}),
    })
  }

  async #fill(checkpoints: Checkpoints, start: JobStart): Promise<void> {
    const queue = [...start.parts]
    const lanes: BatchShard[][] = []
    let firstError: unknown
    const cut = () => {
      for (const shard of lanes.flat()) shard.destroy()
    }
    // A shard that does not answer must not hold up Ctrl-C for ever.
    this.#watch.signal.addEventListener('abort', () => this.#watch.clock.after(5000, cut), {
      once: true,
    })
    try {
      for (let lane = 0; lane < Math.min(this.#request.jobs, queue.length); lane++)
        lanes.push(await this.#openLane())
      const work = lanes.map(async (shards) => {
        for (let part = queue.shift(); part !== undefined; part = queue.shift())
          await this.#loadPart(part, shards, checkpoints, start)
      })
      for (const one of work)
        one.catch((error) => {
          firstError ??= error
          this.#stop.abort()
        })
      await Promise.allSettled(work)
    } finally {
      await Promise.all(lanes.flat().map((shard) => shard.close()))
    }
    if (firstError !== undefined) throw firstError
    if (this.#watch.signal.aborted) throw engineError('INTERRUPTED', { what: 'copy-shard' })
  }

  async #openLane(): Promise<BatchShard[]> {
    const keeps = this.#request.rejectPath !== undefined
    const opened = await Promise.allSettled(
      this.#setting.urls.map((url) => BatchShard.open(this.#clients, url, keeps)),
    )
    const shards = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    for (const one of opened) {
      if (one.status === 'fulfilled') continue
      for (const shard of shards) shard.destroy()
      throw one.reason
    }
    return shards
  }

  async #loadPart(
    part: JobPart,
    shards: readonly BatchShard[],
    checkpoints: Checkpoints,
    start: JobStart,
  ): Promise<void> {
    const state = start.states[start.parts.indexOf(part)]
    if (state === undefined) return
    const opened = await openPart(part, this.#inputs[part.input] as CopyInput, this.#lane)
    const load = new PartLoad(
      {
        lane: this.#lane,
        checkpoints,
        shards,
        mostBatchBytes: this.#request.batchBytes,
        onCommitted: (shard, rows, bytes) => {
          this.#rows[shard] = (this.#rows[shard] as number) + rows
          this.#bytes[shard] = (this.#bytes[shard] as number) + bytes
        },
        ...(this.#rejects === undefined ? {} : { rejects: this.#rejects }),
      },
      { part, state, ...opened },
    )
    this.#read += await load.run()
  }

  /** Rows of each shard that are not this job's. */
  async #countOthers(start: JobStart): Promise<number[]> {
    const counted = await countRows(this.#setting, this.#clients)
    return counted.map((rows, index) =>
      start.states.reduce((rest, { written }) => rest - (written[index] as number), rows),
    )
  }

  async #verify(before: readonly number[]): Promise<void> {
    const after = await countRows(this.#setting, this.#clients)
    verifyCounts(this.#setting, before, after, this.#rows)
  }
}

/** Column names as the first line of a file in the given dialect. */
function headerLine(names: readonly string[] | undefined, options: LoadRequest['options']): string {
  if (names === undefined) return ''
  const delimiter = String.fromCharCode(options.delimiter)
  if (options.format === 'text')
    return `${names.map((name) => name.replace(/[\\\t\n\r]/g, '\\$&')).join(delimiter)}\n`
  const quote = String.fromCharCode(options.quote)
  const mark = String.fromCharCode(options.escape)
  const quoted = names.map((name) => {
    const marked = mark === quote ? name : name.replaceAll(mark, mark + mark)
    return quote + marked.replaceAll(quote, mark + quote) + quote
  })
  return `${quoted.join(delimiter)}\n`
}

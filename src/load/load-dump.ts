/** Loads plain pg_dump files: each COPY block into the shards of its table, in the order of the dump. */
import { Readable } from 'node:stream'
import { makeCopyOptions } from '../copy/copy-options.js'
import { type BatchRequest, type BatchWatch, loadBatches } from './batches/load-batches.js'
import { DumpReader } from './input/dump-reader.js'
import { readChunks } from './input/open-input.js'
import { dumpEnding } from './load-failure.js'
import type { LoadReport } from './load-report.js'
import { loadCopy } from './whole/load-copy.js'

export type DumpRequest = Omit<BatchRequest, 'table' | 'columns' | 'options'>

/** @throws the first failure; tables before it are loaded */
export async function loadDump(request: DumpRequest, watch: BatchWatch): Promise<LoadReport> {
  const startedMs = watch.clock.monotonicMs()
  const done: string[] = []
  try {
    const report = await loadTables(request, watch, done)
    return { ...report, elapsedMs: watch.clock.monotonicMs() - startedMs }
  } catch (error) {
    throw dumpEnding(error, request.isDryRun ? [] : done)
  }
}

async function loadTables(
  request: DumpRequest,
  watch: BatchWatch,
  done: string[],
): Promise<LoadReport> {
  const reports: LoadReport[] = []
  let setvals = 0
  for (const input of request.inputs) {
    const chunks = readChunks(input, request.compression, (bytes) => watch.onProgress(bytes, 0))
    const reader = new DumpReader(input.name, chunks)
    const inner = { ...watch, onProgress: (_: number, rows: number) => watch.onProgress(0, rows) }
    for (let block = await reader.next(); block !== undefined; block = await reader.next()) {
      const { columns, data, encoding, table } = block
      const { rejectPath } = request
      const one: BatchRequest = {
        ...request,
        inputs: [{ name: `${input.name} (${table})`, open: () => Readable.from(data) }],
        compression: 'none',
        table,
        columns,
        options: makeCopyOptions({
          format: 'text',
          ...(encoding === undefined ? {} : { encoding }),
        }),
        ...(rejectPath === undefined
          ? {}
          : { rejectPath: `${rejectPath}.${table.replaceAll('/', '_')}` }),
      }
      const report = request.isDryRun ? await loadCopy(one, inner) : await loadBatches(one, inner)
      watch.note(`${table}: ${report.read} rows`)
      reports.push(report)
      done.push(table)
    }
    setvals += reader.setvals
  }
  if (setvals > 0)
    watch.note(
      `passed over ${setvals} setval lines: run them on every shard, then pgshard setup, which makes the sequences disjoint`,
    )
  return sumOf(reports)
}

function sumOf(reports: readonly LoadReport[]): LoadReport {
  const shards = new Map<number, { rows: number; bytes: number }>()
  for (const { shard, rows, bytes } of reports.flatMap((report) => report.shards)) {
    const sum = shards.get(shard) ?? { rows: 0, bytes: 0 }
    shards.set(shard, { rows: sum.rows + rows, bytes: sum.bytes + bytes })
  }
  const total = (of: (report: LoadReport) => number) =>
    reports.reduce((sum, report) => sum + of(report), 0)
  const rejectedTo = reports.find((report) => report.rejectedTo !== undefined)?.rejectedTo
  return {
    read: total(({ read }) => read),
    written: total(({ written }) => written),
    rejected: total(({ rejected }) => rejected),
    shards: [...shards].sort(([a], [b]) => a - b).map(([shard, sum]) => ({ shard, ...sum })),
    elapsedMs: 0,
    isReference: false,
    isDryRun: reports.some(({ isDryRun }) => isDryRun),
    ...(rejectedTo === undefined
      ? {}
      : { rejectedTo, inRejectFile: total(({ inRejectFile }) => inRejectFile ?? 0) }),
  }
}

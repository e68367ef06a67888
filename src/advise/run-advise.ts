/** One run of `advise`: schema and workload from files or databases, judged, with the skew of what was chosen. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { Catalog } from '../catalog/catalog.js'
import { readCatalog } from '../catalog/read-catalog.js'
import { engineError } from '../errors/engine-error.js'
import { type Advice, advise } from './advise.js'
import { AdvisedDatabases } from './advised-databases.js'
import type { Candidate } from './propose.js'
import { type AdviceReport, adviceReport } from './report.js'
import { readSchema } from './schema/read-schema.js'
import { readSkew } from './skew.js'
import { readCsvlog, readSqlWorkload, readStatStatements } from './workload/read-workload.js'
import type { Workload } from './workload/workload.js'
import { writeConfig } from './write-config.js'

/** A line of progress; `setTotal` when it becomes known. */
export interface AdviceBar {
  setTotal(total: number): void
  update(done: number): void
  finish(): void
}

export interface AdviceRequest {
  /** A file or a connection string; absent: that of the workload. */
  readonly schema: string | undefined
  readonly workload: string
  readonly format: 'sql' | 'csvlog' | undefined
  readonly database: string | undefined
  readonly shards: number
  readonly searchPath: readonly string[]
  /** Texts of a schema file compare byte by byte. */
  readonly isBytewise: boolean
  /** The candidate to report in full; absent: the best. */
  readonly key: string | undefined
  onNote(text: string): void
  bar(label: string, unit: string, total?: number): AdviceBar
}

export interface AdviceResult {
  readonly report: AdviceReport
  /** pgdog.toml of the candidate that was chosen, if there is one. */
  readonly config: string | undefined
}

/** A connection string rather than a file. */
const isUrl = (text: string): boolean =>
  /^postgres(?:ql)?:\/\//.test(text) || (/^\s*\w+\s*=/.test(text) && !existsSync(text))

/** @throws USAGE, FILE_MISSING, and what the databases say */
export async function runAdvise(request: AdviceRequest): Promise<AdviceResult> {
  const schema = request.schema ?? (isUrl(request.workload) ? request.workload : undefined)
  if (schema === undefined) {
    throw engineError('USAGE', { message: 'give the schema: --schema FILE or --schema URL' })
  }
  const databases = new AdvisedDatabases()
  try {
    return await judge(request, schema, databases)
  } finally {
    await databases.close()
  }
}

async function judge(
  request: AdviceRequest,
  schema: string,
  databases: AdvisedDatabases,
): Promise<AdviceResult> {
  const { shards, searchPath } = request
  const catalog = await catalogOf(request, schema, databases)
  const workload = await workloadOf(request, databases)
  const bar = request.bar('judging', 'shardings')
  const advice = await advise(catalog, workload, {
    shards,
    searchPath,
    onJudged: (done, total) => {
      bar.setTotal(total)
      bar.update(done)
    },
  })
  bar.finish()
  const chosen = chooseKey(advice, request.key)
  const query = isUrl(schema) && chosen ? await databases.query(schema) : undefined
  const skew = query && chosen ? await readSkew(chosen, query) : undefined
  const database = request.database ?? databases.name ?? 'app'
  return {
    report: adviceReport(advice, chosen, skew, shards),
    config: chosen && writeConfig(chosen, { database }),
  }
}

async function catalogOf(
  { isBytewise, onNote }: AdviceRequest,
  schema: string,
  databases: AdvisedDatabases,
): Promise<Catalog> {
  if (isUrl(schema)) return readCatalog(await databases.query(schema))
  const { catalog, unread } = await readSchema(readText(schema), isBytewise)
  for (const { line, message } of unread)
    onNote(`${schema}:${line}: PostgreSQL rejects the statement: ${message}`)
  return catalog
}

async function workloadOf(request: AdviceRequest, databases: AdvisedDatabases): Promise<Workload> {
  const { workload: path } = request
  if (isUrl(path)) return readStatStatements(await databases.query(path))
  const format = request.format ?? (path.endsWith('.csv') ? 'csvlog' : 'sql')
  if (format === 'sql') return readSqlWorkload(readText(path))
  const bar = request.bar(
    path,
    'bytes',
    orMissing(path, () => statSync(path).size),
  )
  const found = await readCsvlog(path, request.database, (done) => bar.update(done))
  bar.finish()
  return found
}

function chooseKey(advice: Advice, wanted: string | undefined): Candidate | undefined {
  if (wanted === undefined) return advice.candidates[0]
  const found = advice.candidates.find(({ key }) => key === wanted)
  if (found) return found
  const known = advice.candidates.map(({ key }) => key).join(', ')
  throw engineError('USAGE', { message: `no candidate is called "${wanted}", only ${known}` })
}

const readText = (path: string): string => orMissing(path, () => readFileSync(path, 'utf8'))

function orMissing<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error)
    throw engineError('FILE_MISSING', { path, reason }, { cause: error })
  }
}

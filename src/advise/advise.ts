/** `pgshard advise`: which keys to shard by. Columns are proposed by what the workload does with them; the router judges. */
import type { Catalog } from '../catalog/catalog.js'
import { loadParser } from '../sql/parse.js'
import { QueryReader } from '../sql/read-query.js'
import { ColumnGraph, type WeighedFacts } from './column-graph.js'
import { isControl, type JudgedStatement } from './judge.js'
import { parameterValues } from './parameter-values.js'
import { type Candidate, type ProposeOptions, proposeKeys } from './propose.js'
import { readFacts } from './workload/statement-facts.js'
import type { Workload } from './workload/workload.js'

export interface Advice {
  /** Best first. */
  readonly candidates: readonly Candidate[]
  readonly tables: number
  /** What was judged, and what was left out and why. */
  readonly workload: {
    readonly statements: number
    readonly calls: number
    /** Transactions, settings and the like: no key changes where they go. */
    readonly control: number
    /** Rejected by PostgreSQL's parser: not judged. */
    readonly rejected: readonly { readonly sql: string; readonly message: string }[]
    /** Not read by pgsql-ast-parser: judged, but not heard about columns. */
    readonly unread: readonly string[]
    readonly notes: readonly string[]
  }
}

interface Sorted {
  readonly judged: JudgedStatement[]
  readonly facts: WeighedFacts[]
  readonly rejected: { sql: string; message: string }[]
  readonly unread: string[]
  control: number
}

const hasParameters = (sql: string): boolean => /\$\d/.test(sql)

function sortOut(workload: Workload, catalog: Catalog, searchPath: readonly string[]): Sorted {
  const reader = new QueryReader()
  const sorted: Sorted = { judged: [], facts: [], rejected: [], unread: [], control: 0 }
  for (const { sql, calls, parameters } of workload.statements) {
    const { statements, syntaxError } = reader.read(sql)
    if (syntaxError) {
      sorted.rejected.push({ sql, message: syntaxError.message })
      continue
    }
    if (statements.every(({ template }) => isControl(template.statement.kind))) {
      sorted.control++
      continue
    }
    const facts = readFacts(sql, catalog, searchPath)
    if (facts) sorted.facts.push({ facts, calls })
    else sorted.unread.push(sql)
    const values = hasParameters(sql) ? parameterValues(sql, facts) : []
    sorted.judged.push({ sql, calls, parameters: parameters ?? values })
  }
  return sorted
}

export async function advise(
  catalog: Catalog,
  workload: Workload,
  options: ProposeOptions,
): Promise<Advice> {
  await loadParser()
  const { judged, facts, rejected, unread, control } = sortOut(
    workload,
    catalog,
    options.searchPath,
  )
  const graph = new ColumnGraph(catalog, facts)
  return {
    candidates: proposeKeys(graph, judged, catalog, options),
    tables: graph.tables.length,
    workload: {
      statements: judged.length,
      calls: judged.reduce((sum, { calls }) => sum + calls, 0),
      control,
      rejected,
      unread,
      notes: workload.notes,
    },
  }
}

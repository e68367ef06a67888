/** What a statement that is no query names and makes: which relations, whether it may stand in a transaction, what it reads. */

import type { Node } from './parse.js'
import { tagOf } from './tree.js'

export interface NamedRelation {
  readonly schema?: string
  readonly name: string
}

export interface DdlFacts {
  /** Relations that it makes, changes or drops. */
  readonly relations: readonly NamedRelation[]
  /** CREATE TABLE AS and its kin: what the query reads. */
  readonly reads: readonly NamedRelation[]
  /** It stores rows of a query. */
  readonly storesRows: boolean
  /** PostgreSQL runs it outside of transactions only. */
  readonly outsideTransaction: boolean
  /** TRUNCATE … RESTART IDENTITY. */
  readonly restartsSequences: boolean
  /** It is about the whole server and not about one database. */
  readonly isServerWide: boolean
  /** A table that it makes or adds columns to, and names of columns that it defines. */
  readonly table?: NamedRelation
  readonly columns: readonly string[]
}

const serverWide = new Set([
  'CreatedbStmt',
  'DropdbStmt',
  'AlterDatabaseStmt',
  'AlterDatabaseSetStmt',
  'AlterDatabaseRefreshCollStmt',
  'CreateTableSpaceStmt',
  'DropTableSpaceStmt',
  'AlterTableSpaceOptionsStmt',
  'AlterSystemStmt',
])

const relationTypes = new Set([
  'OBJECT_TABLE',
  'OBJECT_INDEX',
  'OBJECT_VIEW',
  'OBJECT_MATVIEW',
  'OBJECT_SEQUENCE',
  'OBJECT_FOREIGN_TABLE',
])

type Body = Readonly<Record<string, unknown>>

const isBody = (value: unknown): value is Body => value !== null && typeof value === 'object'

/** Calls `found` for every object beneath `value`, untagged ones too. */
function eachBody(value: unknown, found: (body: Body) => void): void {
  if (!isBody(value)) return
  if (!Array.isArray(value)) found(value)
  for (const inner of Object.values(value)) eachBody(inner, found)
}

function rangesIn(value: unknown): NamedRelation[] {
  const names: NamedRelation[] = []
  eachBody(value, ({ relname, schemaname }) => {
    if (typeof relname !== 'string') return
    names.push({ name: relname, ...(typeof schemaname === 'string' ? { schema: schemaname } : {}) })
  })
  return names
}

/** Names written as lists of strings: DROP TABLE a.b, COMMENT ON TABLE a.b. */
function listedNames(value: unknown, depth: number): NamedRelation[] {
  const names: NamedRelation[] = []
  for (const object of Array.isArray(value) ? value : [value]) {
    const items = (object as { List?: { items?: { String?: { sval?: string } }[] } })?.List?.items
    const parts = (items ?? []).map((item) => item.String?.sval ?? '')
    const path = depth === 0 ? parts : parts.slice(0, -depth)
    const [first, second] = path.slice(-2)
    if (first === undefined) continue
    names.push(second === undefined ? { name: first } : { schema: first, name: second })
  }
  return names
}

const hasOption = (value: unknown, name: string): boolean =>
  (Array.isArray(value) ? value : []).some(
    (one) => (one as { DefElem?: { defname?: string } }).DefElem?.defname === name,
  )

function isConcurrent(body: Body): boolean {
  let found = false
  eachBody(body, ({ concurrent }) => {
    if (concurrent === true) found = true
  })
  return found
}

function runsOutside(tag: string, body: Body): boolean {
  switch (tag) {
    case 'VacuumStmt':
      return body['is_vacuumcmd'] === true
    case 'ClusterStmt':
      return body['relation'] === undefined
    case 'ReindexStmt':
      return (
        hasOption(body['params'], 'concurrently') ||
        !['REINDEX_OBJECT_TABLE', 'REINDEX_OBJECT_INDEX'].includes(String(body['kind']))
      )
    case 'RefreshMatViewStmt':
      return false
    case 'CreateSubscriptionStmt':
    case 'DropSubscriptionStmt':
      return true
    default:
      return isConcurrent(body)
  }
}

function relationsOf(tag: string, body: Body): NamedRelation[] {
  if (tag === 'DropStmt') {
    if (relationTypes.has(String(body['removeType']))) return listedNames(body['objects'], 0)
    const parted = ['OBJECT_TRIGGER', 'OBJECT_RULE', 'OBJECT_POLICY']
    return parted.includes(String(body['removeType'])) ? listedNames(body['objects'], 1) : []
  }
  if (tag === 'CommentStmt' || tag === 'SecLabelStmt') {
    if (relationTypes.has(String(body['objtype']))) return listedNames(body['object'], 0)
    const parted = ['OBJECT_COLUMN', 'OBJECT_TABCONSTRAINT', 'OBJECT_TRIGGER', 'OBJECT_POLICY']
    return parted.includes(String(body['objtype'])) ? listedNames(body['object'], 1) : []
  }
  if (tag === 'CreateTableAsStmt') return rangesIn(body['into'])
  return tag === 'ViewStmt' ? rangesIn(body['view']) : rangesIn(body)
}

function columnsOf(body: Body): string[] {
  const columns: string[] = []
  eachBody(body, ({ colname }) => {
    if (typeof colname === 'string') columns.push(colname)
  })
  return columns
}

/** Facts of a statement that is neither a query nor about the session. */
export function describeDdl(node: Node): DdlFacts {
  const [tag, value] = tagOf(node)
  const body = isBody(value) ? value : {}
  const into = body['into'] as { skipData?: boolean } | undefined
  const storesRows = tag === 'CreateTableAsStmt' && into?.skipData !== true
  const isTable = tag === 'CreateStmt' || tag === 'AlterTableStmt'
  const [table] = isTable ? rangesIn(body['relation']) : []
  return {
    relations: relationsOf(tag, body),
    reads: tag === 'CreateTableAsStmt' ? rangesIn(body['query']) : [],
    storesRows: storesRows && body['objtype'] !== 'OBJECT_MATVIEW',
    outsideTransaction: runsOutside(tag, body),
    restartsSequences: tag === 'TruncateStmt' && body['restart_seqs'] === true,
    isServerWide: serverWide.has(tag),
    ...(table ? { table } : {}),
    columns: columnsOf(body),
  }
}

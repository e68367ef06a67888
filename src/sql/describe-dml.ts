/** INSERT, UPDATE, DELETE and MERGE as query levels. */
import { readMergeFacts } from './merge-facts.js'
import type { DeleteStmt, InsertStmt, MergeStmt, Node, SelectStmt, UpdateStmt } from './parse.js'
import { readColumn, readValue } from './predicate.js'
import {
  addConjuncts,
  addRelation,
  addSubqueries,
  newLevel,
  readFromItem,
  readSelect,
  readWith,
  type Scope,
  useDmlReader,
} from './query-level.js'
import type { InsertFacts, Level, Value } from './statement.js'

type Assigned = NonNullable<Level['assigned']>

function assignments(targets: readonly Node[] | undefined, scope: Scope): Assigned {
  return (targets ?? []).flatMap((node): Assigned[number][] => {
    if (!('ResTarget' in node)) return []
    const { name, val, indirection } = node.ResTarget
    const value = indirection ? undefined : readValue(val, scope.slots)
    const from = indirection ? undefined : readColumn(val)
    return [{ column: name ?? '', ...(value ? { value } : {}), ...(from ? { from } : {}) }]
  })
}

function rowValue(node: Node, scope: Scope): Value | 'default' | undefined {
  return 'SetToDefault' in node ? 'default' : readValue(node, scope.slots)
}

/** What a SELECT puts into the columns of an INSERT; undefined when a star hides it. */
function selectedBy(select: SelectStmt, scope: Scope): InsertFacts['selected'] | undefined {
  if (select.op && select.op !== 'SETOP_NONE') return undefined
  const targets: (Value | ReturnType<typeof readColumn>)[] = []
  for (const node of select.targetList ?? []) {
    if (!('ResTarget' in node)) return undefined
    const { val } = node.ResTarget
    if (val && 'ColumnRef' in val && !readColumn(val)) return undefined
    targets.push(readColumn(val) ?? readValue(val, scope.slots))
  }
  return targets
}

function insertSource(select: SelectStmt, level: Level, scope: Scope): InsertFacts {
  if (select.valuesLists && !select.withClause && !select.sortClause && !select.limitCount) {
    addSubqueries(level, { lists: select.valuesLists }, scope)
    const rows = select.valuesLists.map((node) =>
      'List' in node ? (node.List.items ?? []).map((item) => rowValue(item, scope)) : [],
    )
    return { rows }
  }
  const source = readSelect(select, level, scope)
  const selected = selectedBy(select, scope)
  return selected ? { source, selected } : { source }
}

type OnConflict = NonNullable<InsertStmt['onConflictClause']>

function arbiterOf({ infer }: OnConflict): NonNullable<InsertFacts['conflict']> {
  if (infer?.conname) return { constraint: infer.conname }
  if (!infer?.indexElems) return {}
  const columns = infer.indexElems.map((node) =>
    'IndexElem' in node ? node.IndexElem.name : undefined,
  )
  return { columns }
}

function readInsert(insert: InsertStmt, parent: Level | undefined, scope: Scope): Level {
  const level = newLevel('insert', parent)
  const inner = readWith(insert.withClause, level, scope)
  if (insert.relation) addRelation(level, insert.relation, true)
  const columns = insert.cols?.map((node) =>
    'ResTarget' in node ? (node.ResTarget.name ?? '') : '',
  )
  const query = insert.selectStmt
  const facts: InsertFacts =
    query && 'SelectStmt' in query ? insertSource(query.SelectStmt, level, inner) : { rows: [[]] }
  level.insert = {
    ...facts,
    ...(columns ? { columns } : query ? {} : { columns: [] }),
    ...(insert.override === 'OVERRIDING_USER_VALUE' ? { overridesUser: true as const } : {}),
  }
  const conflict = insert.onConflictClause
  if (conflict) {
    level.insert = { ...level.insert, conflict: arbiterOf(conflict) }
    level.assigned = assignments(conflict.targetList, inner)
    addSubqueries(level, { conflict: [conflict.targetList, conflict.whereClause] }, inner)
  }
  if (insert.returningClause) level.returns = true
  addSubqueries(level, { returning: insert.returningClause }, inner)
  return level
}

function readUpdate(update: UpdateStmt, parent: Level | undefined, scope: Scope): Level {
  const level = newLevel('update', parent)
  const inner = readWith(update.withClause, level, scope)
  if (update.relation) addRelation(level, update.relation, true)
  for (const item of update.fromClause ?? []) readFromItem(item, level, inner)
  addConjuncts(level, update.whereClause, inner)
  level.assigned = assignments(update.targetList, inner)
  const { targetList, whereClause, returningClause } = update
  if (returningClause) level.returns = true
  addSubqueries(level, { parts: [targetList, whereClause, returningClause] }, inner)
  return level
}

function readDelete(statement: DeleteStmt, parent: Level | undefined, scope: Scope): Level {
  const level = newLevel('delete', parent)
  const inner = readWith(statement.withClause, level, scope)
  if (statement.relation) addRelation(level, statement.relation, true)
  for (const item of statement.usingClause ?? []) readFromItem(item, level, inner)
  addConjuncts(level, statement.whereClause, inner)
  const { whereClause, returningClause } = statement
  if (returningClause) level.returns = true
  addSubqueries(level, { parts: [whereClause, returningClause] }, inner)
  return level
}

/** A MERGE's conditions narrow nothing, because NOT MATCHED rows do not meet them; which columns it joins by is told. */
function readMerge(merge: MergeStmt, parent: Level | undefined, scope: Scope): Level {
  const level = newLevel('merge', parent)
  const inner = readWith(merge.withClause, level, scope)
  if (merge.relation) addRelation(level, merge.relation, true)
  if (merge.sourceRelation) readFromItem(merge.sourceRelation, level, inner)
  const { joinCondition, mergeWhenClauses, returningClause } = merge
  if (returningClause) level.returns = true
  level.merge = readMergeFacts(merge, inner.slots)
  for (const { left, right } of level.merge.joins) {
    level.conjuncts.push({ predicate: { op: 'same', left, right } })
  }
  addSubqueries(level, { parts: [joinCondition, mergeWhenClauses, returningClause] }, inner)
  return level
}

/** The level of a query or data-changing statement, or undefined when the node is neither. */
export function readQuery(node: Node, parent: Level | undefined, scope: Scope): Level | undefined {
  if ('SelectStmt' in node) return readSelect(node.SelectStmt, parent, scope)
  if ('InsertStmt' in node) return readInsert(node.InsertStmt, parent, scope)
  if ('UpdateStmt' in node) return readUpdate(node.UpdateStmt, parent, scope)
  if ('DeleteStmt' in node) return readDelete(node.DeleteStmt, parent, scope)
  return 'MergeStmt' in node ? readMerge(node.MergeStmt, parent, scope) : undefined
}

const dmlTags = new Set(['InsertStmt', 'UpdateStmt', 'DeleteStmt', 'MergeStmt'])

useDmlReader((tag, body, parent, scope) => {
  if (!dmlTags.has(tag)) return false
  readQuery({ [tag]: body } as unknown as Node, parent, scope)
  return true
})

/** What a MERGE says beyond its tables: what it joins by, what it does, and the rows of a source that is written out. */
import type { MergeAction, MergeFacts, WrittenSource } from './merge.js'
import type { MergeStmt, Node, SelectStmt } from './parse.js'
import { readColumn, readPredicate, readValue, type SlotFinder } from './predicate.js'
import type { Predicate } from './statement.js'
import { stringsOf } from './tree.js'
import type { Value } from './value.js'

const commands: Readonly<Record<string, MergeAction['command']>> = {
  CMD_INSERT: 'insert',
  CMD_UPDATE: 'update',
  CMD_DELETE: 'delete',
}

function readAction(node: Node, slots: SlotFinder): MergeAction[] {
  if (!('MergeWhenClause' in node)) return []
  const { commandType, matchKind, targetList, values } = node.MergeWhenClause
  const columns = targetList?.map((one) => ('ResTarget' in one ? (one.ResTarget.name ?? '') : ''))
  return [
    {
      command: commands[commandType ?? ''] ?? 'nothing',
      bySource: matchKind === 'MERGE_WHEN_NOT_MATCHED_BY_SOURCE',
      ...(columns ? { columns } : {}),
      ...(values ? { values: values.map((one) => readColumn(one) ?? readValue(one, slots)) } : {}),
    },
  ]
}

/** What leaves a subquery has a type: a string is text. */
function settled(node: Node, slots: SlotFinder): Value | undefined {
  const value = readValue(node, slots)
  const isText = value?.kind === 'slot' && value.literal === 'string' && value.type === undefined
  return isText ? { ...value, type: 'text' } : value
}

const plain = new Set(['targetList', 'valuesLists', 'limitOption', 'op'])

function writtenRows(
  select: SelectStmt,
  slots: SlotFinder,
): Pick<WrittenSource, 'rows' | 'columns' | 'isValues'> | undefined {
  if (Object.keys(select).some((key) => !plain.has(key)) || select.op !== 'SETOP_NONE')
    return undefined
  if (select.valuesLists) {
    const rows = select.valuesLists.map((list) =>
      'List' in list ? (list.List.items ?? []).map((item) => settled(item, slots)) : [],
    )
    const columns = (rows[0] ?? []).map((_, i) => `column${i + 1}`)
    return { rows, columns, isValues: true }
  }
  const targets = select.targetList ?? []
  const values = targets.map((one) =>
    'ResTarget' in one && one.ResTarget.val ? settled(one.ResTarget.val, slots) : undefined,
  )
  const columns = targets.map((one) => ('ResTarget' in one ? (one.ResTarget.name ?? '') : ''))
  return { rows: [values], columns, isValues: false }
}

function writtenSource(source: Node | undefined, slots: SlotFinder): WrittenSource | undefined {
  if (!source || !('RangeSubselect' in source)) return undefined
  const { subquery, alias, lateral } = source.RangeSubselect
  if (!subquery || !('SelectStmt' in subquery) || lateral || !alias) return undefined
  const rows = writtenRows(subquery.SelectStmt, slots)
  if (!rows) return undefined
  const named = stringsOf(alias.colnames)
  const columns = rows.columns.map((column, i) => named[i] ?? column)
  return { ...rows, alias: alias.aliasname ?? '', columns }
}

const equalities = (predicate: Predicate): MergeFacts['joins'] => {
  if (predicate.op === 'and') return predicate.parts.flatMap(equalities)
  return predicate.op === 'same' ? [{ left: predicate.left, right: predicate.right }] : []
}

export function readMergeFacts(merge: MergeStmt, slots: SlotFinder): MergeFacts {
  const written = writtenSource(merge.sourceRelation, slots)
  return {
    joins: merge.joinCondition ? equalities(readPredicate(merge.joinCondition, slots)) : [],
    actions: (merge.mergeWhenClauses ?? []).flatMap((node) => readAction(node, slots)),
    ...(written ? { written } : {}),
  }
}

/** Whether a SELECT's answers from several shards may be put behind each other as they come. */
import { aggregateBuiltins } from './builtin-functions.js'
import type { FuncCall, SelectStmt } from './parse.js'
import { stringsOf, walkTree } from './tree.js'

function callReason(call: FuncCall): string | undefined {
  if (call.over) return 'a window function'
  if (call.agg_star || call.agg_distinct || call.agg_filter || call.agg_order) return 'an aggregate'
  return aggregateBuiltins.has(stringsOf(call.funcname).at(-1) ?? '') ? 'an aggregate' : undefined
}

/** The first thing that needs all rows in one place, by its SQL name; undefined when nothing does. */
export function notPlainBecause(select: SelectStmt): string | undefined {
  if (select.op && select.op !== 'SETOP_NONE') return 'UNION, INTERSECT or EXCEPT'
  if (select.distinctClause) return 'DISTINCT'
  if (select.groupClause) return 'GROUP BY'
  if (select.havingClause) return 'HAVING'
  if (select.windowClause) return 'WINDOW'
  if (select.sortClause) return 'ORDER BY'
  if (select.limitCount || select.limitOffset) return 'LIMIT or OFFSET'
  if (select.intoClause) return 'SELECT INTO'
  if (select.lockingClause) return 'a locking clause'
  if (select.valuesLists) return 'VALUES'
  let found: string | undefined
  walkTree({ list: select.targetList, where: select.whereClause }, (tag, body) => {
    if (tag === 'SubLink') return false
    if (tag === 'FuncCall') found ??= callReason(body as FuncCall)
    if (tag === 'JsonObjectAgg' || tag === 'JsonArrayAgg') found ??= 'an aggregate'
    return true
  })
  return found
}

/** FROM clauses of generated statements. */
import type { Chooser } from './chooser.js'
import { keyValue, type Parameters } from './key-values.js'
import { keyTexts, type TableFacts, tables } from './world.js'

export interface Source {
  readonly alias: string
  readonly table: TableFacts
}

export interface Scope {
  readonly sources: Source[]
  readonly parameters: Parameters
  /** The key's value where keys are pinned. */
  readonly text: string
}

const reference = tables.filter((table) => !table.key)

/** Tables that share a key type, now and then a reference table. */
export function scopeOf(
  choose: Chooser,
  shape: 'pinned' | 'scatter' | 'free',
  text?: string,
  count = 1 + choose.below(3),
): Scope {
  const first = choose.pick(tables.filter((table) => table.key))
  const family = tables.filter((table) => table.key?.type === first.key!.type)
  const others = shape === 'free' && choose.chance(0.2) ? tables : [...family, ...reference]
  const sources = Array.from({ length: count }, (_, i) => ({
    alias: `t${i}`,
    table: i === 0 ? first : choose.pick(others),
  }))
  if (count > 1 && choose.chance(0.2)) sources.reverse()
  return {
    sources,
    parameters: { allowed: choose.chance(0.3), list: [] },
    text: text ?? choose.pick(keyTexts[first.key!.type]),
  }
}

const joins = ['join', 'left join', 'right join', 'full join', 'cross join', ',']

function joinCondition(left: Source, right: Source, shape: string, choose: Chooser): string {
  const equal =
    left.table.key && right.table.key && left.table.key.type === right.table.key.type
      ? `${left.alias}."${left.table.key.column}" = ${right.alias}."${right.table.key.column}"`
      : undefined
  const other = choose.pick([
    `${left.alias}.id = ${right.alias}.id`,
    `${left.alias}.label = ${right.alias}.label`,
    `${left.alias}.done`,
    'true',
  ])
  if (!equal || (shape !== 'scatter' && choose.chance(0.3))) return other
  return choose.chance(0.5) ? equal : `${equal} and ${other}`
}

/** An ON condition of an outer join that narrows one side only. */
function sideCondition(right: Source, scope: Scope, choose: Chooser): string {
  const { key } = right.table
  if (!key || !choose.chance(0.2)) return ''
  return ` and ${right.alias}."${key.column}" = ${keyValue(key.type, choose, { allowed: false, list: [] }, choose.chance(0.5) ? scope.text : undefined)}`
}

export function joinedFrom(scope: Scope, shape: string, choose: Chooser): string {
  const [first, ...others] = scope.sources as [Source, ...Source[]]
  let sql = `from ${first.table.name} ${first.alias}`
  let before = first
  for (const source of others) {
    const join = choose.pick(joins)
    sql += `${join === ',' ? ' cross' : ` ${join.replace(' join', '').replace('join', '')}`} join ${source.table.name} ${source.alias}`
    if (join !== 'cross join' && join !== ',') {
      sql += ` on ${joinCondition(before, source, shape, choose)}`
      // FULL JOIN takes only conditions that can be merged or hashed.
      if (join !== 'full join') sql += sideCondition(source, scope, choose)
    }
    before = choose.chance(0.5) ? source : before
  }
  return sql
}

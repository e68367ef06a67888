/**
 * Where each change of a source goes: the same key placement as SQL and COPY. Pure.
 * One router a source, because relations have numbers and column orders of their own on each.
 */
import { EngineError, engineError } from '../../errors/engine-error.js'
import {
  COLUMN_BINARY,
  COLUMN_NULL,
  COLUMN_TEXT,
  COLUMN_UNCHANGED,
  type Relation,
  type RowDelete,
  type RowInsert,
  type RowUpdate,
  type Tuple,
} from '../../replication/change.js'
import { everyCopy, type MovePlan, type MoveTable, tableLabel } from '../move-table.js'
import { isReplaced } from './apply-statements.js'
import type { PlacedTuple } from './array-parameter.js'
import { isKeyless, isWhole, keyOnly, overlay, type RowOp } from './change-batch.js'

export interface RoutedOp {
  readonly shard: number
  readonly op: RowOp
}

/** A row whose key changed while it has values that the stream does not carry: they are read where the row was. */
export interface Rekey {
  readonly table: MoveTable
  readonly before: PlacedTuple
  readonly after: PlacedTuple
  readonly fromShards: readonly number[]
  readonly toShards: readonly number[]
}

export type Routed =
  | { readonly kind: 'ops'; readonly ops: readonly RoutedOp[] }
  | { readonly kind: 'rekey'; readonly rekey: Rekey }

interface Bound {
  readonly table: MoveTable
  readonly at: Int32Array
}

export class ChangeRouter {
  readonly #plan: MovePlan
  readonly #server: string
  readonly #tables: ReadonlyMap<string, MoveTable>
  readonly #bound = new Map<Relation, Bound>()

  constructor(plan: MovePlan, server: string) {
    this.#plan = plan
    this.#server = server
    this.#tables = new Map(plan.tables.map((table) => [tableLabel(table), table]))
  }

  /** @throws RESHARD_DDL when the relation is no longer what was copied */
  tableOf(relation: Relation): MoveTable {
    return this.#bind(relation).table
  }

  /** @throws RESHARD_DDL, RESHARD_KEY_MISSING, and 23514 for a key that the target's map does not hold */
  route(change: RowInsert | RowUpdate | RowDelete): Routed {
    const { table, at } = this.#bind(change.relation)
    if (change.kind === 'insert') {
      return ops(this.#to('put', table, { tuple: change.after, at }))
    }
    if (change.kind === 'delete') {
      return ops(this.#to('delete', table, { tuple: change.before, at }))
    }
    return this.#update(table, at, change)
  }

  #update(table: MoveTable, at: Int32Array, change: RowUpdate): Routed {
    let after: PlacedTuple = { tuple: change.after, at }
    if (!change.before) {
      if (isWhole(table, after)) return ops(this.#to('put', table, after))
      return this.#part(table, after, after)
    }
    const before: PlacedTuple = { tuple: change.before, at }
    // Identity FULL: the old row has every value, also those that the new one does not repeat.
    if (change.beforeKind === 'full') after = overlay(table, before, after)
    // A key stored out of line is unchanged in the new row; the old key carries it.
    if (hasUnchangedKey(table, after)) after = overlay(table, keyOnly(table, before), after)
    const whole = isWhole(table, after)
    if (this.#staysPut(table, before, after)) {
      return whole ? ops(this.#to('put', table, after)) : this.#part(table, after, after)
    }
    if (whole) {
      return ops([...this.#to('delete', table, before), ...this.#to('put', table, after)])
    }
    return this.#part(table, before, after)
  }

  /** A row of which the stream lacks values. */
  #part(table: MoveTable, before: PlacedTuple, after: PlacedTuple): Routed {
    if (before === after && !isReplaced(table)) return ops(this.#to('patch', table, after))
    const fromShards = this.shardsOf(table, before)
    return {
      kind: 'rekey',
      rekey: { table, before, after, fromShards, toShards: this.shardsOf(table, after) },
    }
  }

  /** The same row on the same shards. */
  #staysPut(table: MoveTable, before: PlacedTuple, after: PlacedTuple): boolean {
    if (isKeyless(table) || !sameIdentity(table, before, after)) return false
    const { to } = table
    if (to.kind !== 'sharded' || table.identity.includes(to.keyIndex)) return true
    return this.shardsOf(table, before)[0] === this.shardsOf(table, after)[0]
  }

  #to(kind: RowOp['kind'], table: MoveTable, row: PlacedTuple): RoutedOp[] {
    return this.shardsOf(table, row).map((shard) => ({ shard, op: { kind, table, row } }))
  }

  shardsOf(table: MoveTable, row: PlacedTuple): readonly number[] {
    const { to } = table
    if (to.kind !== 'sharded') return everyCopy(to, this.#plan.targetCount)
    const place = row.at[to.keyIndex] as number
    const { tuple } = row
    const kind = tuple.kinds[place]
    const start = tuple.starts[place] as number
    const end = tuple.ends[place] as number
    try {
      if (kind === COLUMN_NULL) return this.#moved(to.placer.ofNull())
      if (kind === COLUMN_TEXT) return this.#moved(to.placer.ofText(tuple.bytes, start, end))
      if (kind === COLUMN_BINARY) return this.#moved(to.placer.ofBinary(tuple.bytes, start, end))
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      throw engineError(
        'RESHARD_APPLY',
        { table: tableLabel(table), server: 'the targets', reason: error.message },
        { cause: error },
      )
    }
    throw engineError('RESHARD_KEY_MISSING', { table: tableLabel(table), column: to.keyColumn })
  }

  /** A key that stays where it is has no shard among the targets. */
  #moved(shard: number): readonly number[] {
    return shard < this.#plan.targetCount ? [shard] : []
  }

  #bind(relation: Relation): Bound {
    const known = this.#bound.get(relation)
    if (known) return known
    const label = tableLabel(relation)
    const table = this.#tables.get(label)
    const changed = (what: string): Error =>
      engineError('RESHARD_DDL', { table: label, server: this.#server, what })
    if (!table) throw changed('it was not there when the move began')
    if (relation.columns.length !== table.columns.length) throw changed('it has other columns now')
    const at = Int32Array.from(table.columns, ({ name, typeOid }) => {
      const place = relation.columns.findIndex((column) => column.name === name)
      const found = relation.columns[place]
      if (!found) throw changed(`column "${name}" is gone`)
      // Types that are not built in have a number of their own on each server.
      if (typeOid < 10_000 && found.typeOid !== typeOid)
        throw changed(`column "${name}" has another type`)
      return place
    })
    const bound = { table, at }
    this.#bound.set(relation, bound)
    return bound
  }
}

const ops = (list: readonly RoutedOp[]): Routed => ({ kind: 'ops', ops: list })

function hasUnchangedKey(table: MoveTable, row: PlacedTuple): boolean {
  return table.identity.some(
    (column) => row.tuple.kinds[row.at[column] as number] === COLUMN_UNCHANGED,
  )
}

function sameIdentity(table: MoveTable, a: PlacedTuple, b: PlacedTuple): boolean {
  return table.identity.every((column) =>
    valueBytes(a.tuple, a.at[column] as number).equals(valueBytes(b.tuple, b.at[column] as number)),
  )
}

function valueBytes(tuple: Tuple, place: number): Buffer {
  return tuple.bytes.subarray(tuple.starts[place], tuple.ends[place])
}

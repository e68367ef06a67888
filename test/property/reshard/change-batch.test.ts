import fc from 'fast-check'
import { expect, test } from 'vitest'
import { COLUMN_NULL, COLUMN_TEXT, COLUMN_UNCHANGED } from '../../../src/replication/change.js'
import type { PlacedTuple } from '../../../src/reshard/follow/array-parameter.js'
import { ChangeBatch, type RowOp } from '../../../src/reshard/follow/change-batch.js'
import type { MoveTable } from '../../../src/reshard/move-table.js'

const table = {
  columns: [{ name: 'id' }, { name: 'a' }, { name: 'big' }],
  identity: [0],
} as unknown as MoveTable

type Cell = string | null | 'unchanged'

const kindOf = (cell: Cell): number => {
  if (cell === null) return COLUMN_NULL
  return cell === 'unchanged' ? COLUMN_UNCHANGED : COLUMN_TEXT
}

function row(cells: readonly Cell[], order: readonly number[]): PlacedTuple {
  const at = new Int32Array(3)
  const tuple = {
    bytes: Buffer.from(''),
    kinds: new Uint8Array(3),
    starts: new Int32Array(3),
    ends: new Int32Array(3),
  }
  const parts: Buffer[] = []
  let offset = 0
  // The source's column order may differ from the table's.
  for (const [place, column] of order.entries()) {
    at[column] = place
    const cell = cells[column] as Cell
    const part = Buffer.from(cell === null || cell === 'unchanged' ? '' : cell)
    tuple.kinds[place] = kindOf(cell)
    tuple.starts[place] = offset
    offset += part.length
    tuple.ends[place] = offset
    parts.push(part)
  }
  return { tuple: { ...tuple, bytes: Buffer.concat(parts) }, at }
}

/** What a target does with an operation. */
function apply(rows: Map<string, (string | null)[]>, op: RowOp): void {
  const { tuple, at } = op.row
  const cells = table.columns.map((_, column): Cell => {
    const place = at[column] as number
    if (tuple.kinds[place] === COLUMN_NULL) return null
    if (tuple.kinds[place] === COLUMN_UNCHANGED) return 'unchanged'
    return tuple.bytes.toString('utf8', tuple.starts[place], tuple.ends[place])
  })
  const key = cells[0] as string
  if (op.kind === 'delete') rows.delete(key)
  else if (op.kind === 'put') rows.set(key, cells as (string | null)[])
  else {
    const old = rows.get(key)
    if (old)
      rows.set(
        key,
        cells.map((cell, i) => (cell === 'unchanged' ? (old[i] as string | null) : cell)),
      )
  }
}

function opOf(
  kind: RowOp['kind'],
  id: string,
  a: string | null,
  big: string,
  order: readonly number[],
): RowOp {
  return { kind, table, row: row([id, a, kind === 'patch' ? 'unchanged' : big], order) }
}

/** As `applyNet` of the engine orders it: deletes, patches, puts. */
function applyNet(
  start: Map<string, (string | null)[]>,
  batch: ChangeBatch,
): Map<string, (string | null)[]> {
  const rows = new Map(start)
  const ops = [...batch.net()].flatMap(([, list]) => list)
  for (const wanted of ['delete', 'patch', 'put']) {
    for (const op of ops.filter(({ kind }) => kind === wanted)) apply(rows, op)
  }
  return rows
}

const kinds = { insert: 'put', update: 'put', patch: 'patch', delete: 'delete' } as const

test('the net effect of a batch is the effect of its changes in order', () => {
  const step = fc.record({
    id: fc.constantFrom('1', '2', '12'),
    a: fc.option(fc.string({ maxLength: 3 }).filter((text) => text !== 'unchanged')),
    big: fc.constantFrom('x', 'yy', 'é'),
    wish: fc.constantFrom('insert', 'update', 'patch', 'delete' as const),
    order: fc.constantFrom([0, 1, 2], [2, 0, 1]),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), fc.boolean(), (steps, hasRows) => {
      const start = new Map<string, (string | null)[]>(hasRows ? [['1', ['1', 'old', 'big']]] : [])
      const inOrder = new Map(start)
      const batch = new ChangeBatch()
      for (const { id, a, big, wish, order } of steps) {
        // A source can only change what it has.
        const kind = inOrder.has(id) ? kinds[wish] : 'put'
        const op = opOf(kind, id, a, big, order)
        batch.add(op)
        apply(inOrder, op)
      }
      const netRows = applyNet(start, batch)
      expect([...netRows].sort()).toEqual([...inOrder].sort())
      // Applied a second time, as after a death before its progress was stored, the log ends in the same rows.
      const again = new Map(netRows)
      for (const op of batch.log) apply(again, op)
      expect([...again].sort()).toEqual([...inOrder].sort())
    }),
    { seed: 8, numRuns: 500 },
  )
})

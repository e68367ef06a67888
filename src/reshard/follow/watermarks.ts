/**
 * Which changes of a source the copy has already. A part that was read in a snapshot with watermark W holds the effect of
 * every commit whose record starts before W and of no other: one that starts exactly at W is applied. Each target has
 * watermarks of its own, because after a death a part may have been copied to some of them later than to others. Pure.
 */
import { LSN_ZERO, type Lsn, maxLsn } from '../../replication/lsn.js'
import { PartFinder } from '../copy/part.js'
import type { CopiedPart } from '../journal/copied-parts.js'
import type { JournalPart } from '../journal/journal.js'
import { type MoveTable, tableLabel } from '../move-table.js'
import type { PlacedTuple } from './array-parameter.js'
import { identityKey } from './change-batch.js'

interface TableParts {
  readonly finder: PartFinder
  /** By target shard, then by part. */
  readonly marks: readonly (readonly Lsn[])[]
}

/** How the rows of a table stand to a commit, on one target. */
export type Coverage = 'none' | 'all' | 'some'

export class Watermarks {
  readonly #tables = new Map<MoveTable, TableParts>()
  /** Rows that were read again alone. */
  readonly #rows = new Map<string, Lsn>()
  #highest: Lsn = LSN_ZERO

  /** `copied`: by target shard. */
  constructor(
    tables: readonly MoveTable[],
    source: number,
    parts: readonly JournalPart[],
    copied: readonly (readonly CopiedPart[])[],
  ) {
    for (const table of tables) {
      const label = tableLabel(table)
      const mine = parts.filter((one) => one.table === label && one.source === source)
      const lows = mine.map(({ low }) => (low === null ? null : (JSON.parse(low) as string[])))
      const marks = copied.map((list) => {
        const found = list.filter((one) => one.table === label && one.source === source)
        const byPart = new Map(found.map((one) => [one.part, one.watermark]))
        return mine.map(({ part }) => this.#noted(byPart.get(part) ?? LSN_ZERO))
      })
      this.#tables.set(table, { finder: new PartFinder(table, lows), marks })
    }
  }

  /** From here on every change is applied. */
  get highest(): Lsn {
    return this.#highest
  }

  /** True when the row's part was copied to the target after the commit: the change is there already. */
  covers(shard: number, table: MoveTable, row: PlacedTuple, commitStart: Lsn): boolean {
    if (commitStart >= this.#highest) return false
    const parts = this.#tables.get(table)
    const marks = parts?.marks[shard]
    if (marks && commitStart < (marks[parts.finder.find(row)] ?? LSN_ZERO)) return true
    if (this.#rows.size === 0) return false
    return commitStart < (this.#rows.get(rowName(shard, table, row)) ?? LSN_ZERO)
  }

  /** Whether a commit's effect on a whole table is in its copy on a target. */
  coverage(shard: number, table: MoveTable, commitStart: Lsn): Coverage {
    const marks = this.#tables.get(table)?.marks[shard] ?? []
    const covered = marks.filter((mark) => commitStart < mark).length
    if (covered > 0 && covered === marks.length) return 'all'
    return covered > 0 || this.#hasRowsAfter(commitStart) ? 'some' : 'none'
  }

  /** A row was read again by itself: what it is says what every commit before `lsn` did to it. */
  reread(shard: number, table: MoveTable, row: PlacedTuple, lsn: Lsn): void {
    this.#rows.set(rowName(shard, table, row), this.#noted(lsn))
  }

  #hasRowsAfter(commitStart: Lsn): boolean {
    return [...this.#rows.values()].some((lsn) => commitStart < lsn)
  }

  #noted(lsn: Lsn): Lsn {
    this.#highest = maxLsn(this.#highest, lsn)
    return lsn
  }
}

const rowName = (shard: number, table: MoveTable, row: PlacedTuple): string =>
  `${shard} ${table.sqlName} ${identityKey(table, row)}`

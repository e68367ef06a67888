/**
 * Tables whose rows matter only where they join others come after these: what the copies of those hold says which rows.
 */
import type { GatheredTable, JoinedRows } from '../plan/gather-program.js'
import { joinedTo } from './part-sql.js'
import { type Load, planLoad, type Situation } from './plan-load.js'
import type { Taken } from './take-rows.js'

interface RoundWork {
  /** The values of a copy's column as an array; undefined when there are too many. */
  keysOf(joined: JoinedRows): Promise<string | null | undefined>
  /** Copies what a load says; `before` was taken already. Gives all that was taken. */
  take(load: Load, before: Taken): Promise<Taken>
}

/** Tables in the order of their copies: each round needs those before it. */
export function roundsOf(
  tables: readonly GatheredTable[],
  snapshot: Situation['snapshot'],
): readonly (readonly GatheredTable[])[] {
  // statements of one transaction that see different rows cannot follow each other
  if (snapshot === 'statement') return [tables]
  const rounds: GatheredTable[][] = []
  const done = new Set<string>()
  for (let left = [...tables]; left.length > 0; ) {
    const now = left.filter(({ joined }) => !joined || done.has(joined.to))
    // never: a join leads to a table that is copied before it
    if (now.length === 0) return [tables]
    rounds.push(now)
    for (const { name } of now) done.add(name)
    left = left.filter((table) => !now.includes(table))
  }
  return rounds
}

export async function takeInRounds(
  tables: readonly GatheredTable[],
  views: readonly { readonly name: string; readonly sql: string }[],
  situation: Situation,
  work: RoundWork,
): Promise<Taken> {
  const rounds = roundsOf(tables, situation.snapshot)
  const begun = new Set<number>()
  let taken: Taken = { rows: 0, bytes: 0 }
  for (const [number, round] of rounds.entries()) {
    const isLast = number === rounds.length - 1
    const known: GatheredTable[] = []
    // One after the other: the one server that is asked answers in turn, and whoever waits hears the next answer.
    for (const table of round) {
      const isAsked = table.joined !== undefined && number > 0
      const keys = isAsked ? await work.keysOf(table.joined) : undefined
      known.push(keys === undefined ? table : joinedTo(table, keys))
    }
    const load = planLoad(known, isLast ? views : [], situation, {
      ...{ begun, isFirst: number === 0, isLast },
    })
    taken = await work.take(load, taken)
    for (const { shard } of load.sources) begun.add(shard)
  }
  return taken
}

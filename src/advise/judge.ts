/** What the router says of a workload under one sharding, counted by statement and by call. */
import type { Catalog } from '../catalog/catalog.js'
import type { StatementKind } from '../plan/effects.js'
import type { Plan, QueryPlanner } from '../plan/plan.js'
import { textParameters } from '../routing/describe-route.js'
import { makeQueryPlanner } from '../routing/query-planner.js'
import type { ShardingConfig } from '../sharding/sharded-table.js'

export const fates = ['one', 'any', 'scatter', 'split', 'gather', 'everywhere', 'refused'] as const

/**
 * one: stays on one shard. any: reads reference tables only. scatter: several shards answer and their answers are put
 * together. split: rows of one statement go to several shards. gather: rows of several shards meet on one server.
 * everywhere: written on every shard.
 */
export type Fate = (typeof fates)[number]

export interface Tally {
  statements: number
  calls: number
}

export interface FateReason extends Readonly<Tally> {
  readonly fate: Fate
  readonly reason: string
}

export interface Verdict {
  readonly counts: Readonly<Record<Fate, Readonly<Tally>>>
  /** Why statements do not stay on one shard, the most frequent first. */
  readonly reasons: readonly FateReason[]
}

export interface JudgedStatement {
  readonly sql: string
  readonly calls: number
  readonly parameters: readonly (string | null)[]
}

/** They follow the transaction, or stay with the proxy: no key changes them. */
const control = new Set<StatementKind>(
  'begin commit rollback savepoint release rollback_to two_phase set reset show discard deallocate listen unlisten notify fetch close execute'.split(
    ' ',
  ) as StatementKind[],
)

export const isControl = (kind: StatementKind): boolean => control.has(kind)

export function fateOf(plan: Plan): Fate {
  switch (plan.how) {
    case 'relay':
      return plan.anyShard ? 'any' : 'one'
    case 'concatenate':
    case 'merge':
    case 'explain':
      return 'scatter'
    case 'split':
    case 'copy':
      return 'split'
    case 'gather':
      return 'gather'
    case 'everywhere':
      return 'everywhere'
    case 'refuse':
      return 'refused'
  }
}

class Counting {
  readonly counts = Object.fromEntries(
    fates.map((fate) => [fate, { statements: 0, calls: 0 }]),
  ) as Record<Fate, Tally>
  readonly #reasons = new Map<string, { fate: Fate; reason: string } & Tally>()

  add(plan: Plan, calls: number): void {
    const fate = fateOf(plan)
    this.#count(this.counts[fate], calls)
    if (fate === 'one' || fate === 'any') return
    const reason = plan.error?.message ?? plan.reasons.at(-1) ?? ''
    const key = `${fate} ${reason}`
    const known = this.#reasons.get(key) ?? { fate, reason, statements: 0, calls: 0 }
    this.#reasons.set(key, known)
    this.#count(known, calls)
  }

  #count(tally: Tally, calls: number): void {
    tally.statements++
    tally.calls += calls
  }

  finish(): Verdict {
    const reasons = [...this.#reasons.values()].sort(
      (a, b) => b.calls - a.calls || (a.reason < b.reason ? -1 : 1),
    )
    return { counts: this.counts, reasons }
  }
}

const someNull = (values: readonly (string | null)[]) => {
  const bound = textParameters(values.map((value) => value ?? ''))
  return bound && { ...bound, isNull: (index: number) => values[index] === null }
}

/** `loadParser` must have resolved. A text that PostgreSQL rejects is counted nowhere. */
export function judge(
  workload: readonly JudgedStatement[],
  sharding: ShardingConfig,
  catalog: Catalog,
  searchPath: readonly string[],
): Verdict {
  const planner: QueryPlanner = makeQueryPlanner({ sharding, catalog })
  const counting = new Counting()
  for (const { sql, calls, parameters } of workload) {
    for (const statement of planner.plan(sql).statements) {
      if (isControl(statement.kind)) continue
      counting.add(statement.route(someNull(parameters), { searchPath }), calls)
    }
  }
  return counting.finish()
}

/** What a call of each fate is worth, of what one that stays on one shard is: what it costs in servers asked and in waiting. */
const worth: Readonly<Record<Fate, number>> = {
  one: 1,
  any: 0.6,
  split: 0.5,
  scatter: 0.25,
  everywhere: 0.2,
  gather: 0.1,
  refused: 0,
}

/** From 0 to 1. */
export function scoreOf({ counts }: Verdict): number {
  const calls = fates.reduce((sum, fate) => sum + counts[fate].calls, 0)
  if (calls === 0) return 0
  return fates.reduce((sum, fate) => sum + worth[fate] * counts[fate].calls, 0) / calls
}

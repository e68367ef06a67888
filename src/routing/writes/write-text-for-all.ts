/** One text for several shards, the same on each: what a scattered write sends. */
import type { Plan } from '../../plan/plan.js'
import type { SplitProgram } from '../../plan/split-program.js'
import { listShards, type ShardSet } from '../../sharding/shard-set.js'
import type { Level, Statement } from '../../sql/statement.js'
import type { Run } from '../key-value.js'
import { relayNowhere, relayTo, unsupported } from '../plans.js'
import type { RoutingWorld } from '../world.js'
import { clockText, clockUses, type Edit, returningAt, spliced } from './write-text.js'

export type WriteRoute = (run: Run) => Plan

/** The client's text for each shard, with the time of its transaction written in where it stands. */
export function textForAll(
  statement: Statement,
  run: Run,
  shards: readonly number[],
  returns: boolean,
): SplitProgram | Plan {
  const sql = run.sql.slice(run.start, run.end)
  const program = (text: string): SplitProgram => ({
    parts: shards.map((shard) => ({ shard, sql: text })),
    returns,
  })
  if (!statement.usesClock) return program(sql)
  return (
    withDrawnClock(sql, returns, run, program) ??
    unsupported('now() or CURRENT_TIMESTAMP in RETURNING', 'return the column instead')
  )
}

/** The program of a text with the time of its transaction written in; undefined: RETURNING shows the time. */
export function withDrawnClock(
  sql: string,
  returns: boolean,
  run: Run,
  program: (text: string) => SplitProgram,
): SplitProgram | undefined {
  const uses = clockUses(sql, run.standard)
  const returning = returningAt(sql, run.standard)
  if (uses.length === 0 || uses.some((use) => use.start >= returning)) return undefined
  return {
    parts: [],
    returns,
    draw: {
      sql: 'SELECT pg_catalog.now()',
      count: 1,
      usesClock: true,
      finish: ([result]) => {
        const now = result?.rows[0]?.[0] ?? ''
        const edits = uses.map(
          ({ start, end, type }): Edit => ({ start, end, text: clockText(now, type) }),
        )
        return program(spliced(sql, 0, sql.length, edits))
      },
    },
  }
}

export const isPlan = (made: SplitProgram | Plan): made is Plan => 'how' in made

/** One write for rows of these shards: each changes its own. */
export function scatterTo(
  statement: Statement,
  root: Level,
  target: ShardSet,
  run: Run,
  world: RoutingWorld,
  reasons: readonly string[],
): Plan {
  const shards = listShards(target, world.map.shardCount)
  const [first] = shards
  if (first === undefined) return relayNowhere('primary', 'no shard can hold a matching row')
  if (shards.length === 1) return relayTo(first, 'primary', 'the sharding key names one shard')
  const split = textForAll(statement, run, shards, root.returns === true)
  return isPlan(split) ? split : { how: 'split', target, role: 'primary', reasons, split }
}

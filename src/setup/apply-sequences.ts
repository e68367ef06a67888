/** Changes sequences on all shards together: locked first, then read, then restarted, so that no value is drawn in between. */
import { adminQuery } from '../pg/admin-query.js'
import { qualifiedName } from '../pg/sql-names.js'
import { findSequences, type SequenceState, sequenceChanges } from './sequences.js'
import type { SetupShard } from './setup-shards.js'
import type { ShardedRelation } from './sharded-relations.js'

export interface SequencePlan {
  /** Sequences to change, by qualified name, with their state on each shard in order. */
  readonly changes: readonly { readonly name: string; readonly states: readonly SequenceState[] }[]
  /** Disjoint already. */
  readonly unchanged: readonly string[]
  /** With the reason. */
  readonly skipped: readonly string[]
}

export async function planSequences(
  shards: readonly SetupShard[],
  relations: readonly (readonly ShardedRelation[])[],
): Promise<SequencePlan> {
  const found = await Promise.all(
    shards.map((shard, number) => findSequences(shard.ask, relations[number] ?? [])),
  )
  const names = [...new Set(found.flat().map((state) => qualifiedName(state)))].sort()
  const changes: { name: string; states: SequenceState[] }[] = []
  const unchanged: string[] = []
  const skipped: string[] = []
  for (const name of names) {
    const states = found.flatMap((all) => all.find((state) => qualifiedName(state) === name) ?? [])
    const planned = states.length === shards.length ? sequenceChanges(states) : undefined
    if (states.length !== shards.length) skipped.push(`${name}: it is not on every shard`)
    else if (planned === undefined) skipped.push(`${name}: it counts down`)
    else if (planned.length === 0) unchanged.push(name)
    else changes.push({ name, states })
  }
  return { changes, unchanged, skipped }
}

export async function applySequences(
  shards: readonly SetupShard[],
  relations: readonly (readonly ShardedRelation[])[],
  plan: SequencePlan,
): Promise<void> {
  if (plan.changes.length === 0) return
  const everywhere = (sql: (number: number) => string) =>
    Promise.all(shards.map((shard, number) => adminQuery(shard.client, sql(number))))
  try {
    await everywhere(
      () =>
        `BEGIN; SET LOCAL lock_timeout = '30s';\n${plan.changes
          .map(({ name }) => `ALTER SEQUENCE ${name} INCREMENT BY ${shards.length};`)
          .join('\n')}`,
    )
    const names = new Set(plan.changes.map((change) => change.name))
    const found = await Promise.all(
      shards.map((shard, number) => findSequences(shard.ask, relations[number] ?? [])),
    )
    const locked = [...names].map((name) =>
      found.flatMap((all) => all.find((state) => qualifiedName(state) === name) ?? []),
    )
    const changes = locked.flatMap((states) => sequenceChanges(states) ?? [])
    await everywhere((number) => {
      const mine = changes.filter((change) => change.shard === number)
      return `${mine.map((change) => change.sql).join('')}COMMIT;`
    })
  } catch (error) {
    await Promise.allSettled(shards.map((shard) => shard.client.query('ROLLBACK')))
    throw error
  }
}

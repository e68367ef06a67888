/**
 * Sequences behind columns of sharded tables made disjoint: N shards count in steps of N, each from its own start.
 * Values that were drawn before stay where they are; new ones begin above the highest of all shards.
 */

import { qualifiedName, quoteLiteral } from '../pg/sql-names.js'
import type { Ask } from './shard-identity.js'
import type { ShardedRelation } from './sharded-relations.js'

export interface SequenceState {
  readonly schema: string
  readonly name: string
  readonly increment: bigint
  readonly maximum: bigint
  /** The value that the next nextval returns. */
  readonly next: bigint
  /** The highest value drawn so far. */
  readonly drawn: bigint
}

/** Sequences of identity and serial columns, and those that a default draws from. */
export async function findSequences(
  ask: Ask,
  relations: readonly ShardedRelation[],
): Promise<SequenceState[]> {
  if (relations.length === 0) return []
  const tables = relations
    .map((relation) => `${quoteLiteral(qualifiedName(relation))}::regclass`)
    .join(', ')
  const rows = await ask(`
    WITH owned AS (
      SELECT d.objid AS seq FROM pg_depend d
      WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
        AND d.deptype IN ('a', 'i') AND d.refobjid IN (${tables})
      UNION
      SELECT d.refobjid FROM pg_attrdef f
      JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass
      WHERE f.adrelid IN (${tables})
    )
    SELECT n.nspname AS schema, c.relname AS name, s.seqincrement AS increment, s.seqmax AS maximum,
      s.seqstart AS start
    FROM owned o JOIN pg_class c ON c.oid = o.seq AND c.relkind = 'S'
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_sequence s ON s.seqrelid = c.oid
    ORDER BY 1, 2`)
  const states: SequenceState[] = []
  for (const row of rows) {
    const place = { schema: row['schema'] as string, name: row['name'] as string }
    const [own] = await ask(
      `SELECT last_value AS last, is_called AS called FROM ${qualifiedName(place)}`,
    )
    const last = BigInt(own?.['last'] ?? row['start'] ?? '1')
    const increment = BigInt(row['increment'] ?? '1')
    const isCalled = own?.['called'] === 't'
    states.push({
      ...place,
      increment,
      maximum: BigInt(row['maximum'] ?? '9223372036854775807'),
      next: isCalled ? last + increment : last,
      drawn: isCalled ? last : last - 1n,
    })
  }
  return states
}

export interface SequenceChange {
  readonly shard: number
  readonly schema: string
  readonly name: string
  readonly sql: string
}

/** True when the sequence of each shard already counts in steps of N in a residue of its own. */
export function isDisjoint(states: readonly SequenceState[]): boolean {
  const count = BigInt(states.length)
  const residues = new Set(states.map((state) => ((state.next % count) + count) % count))
  return states.every((state) => state.increment === count) && residues.size === states.length
}

/** The next value of `shard`: the first above `highest` in the shard's residue. */
export function nextValue(highest: bigint, shard: number, shardCount: number): bigint {
  const count = BigInt(shardCount)
  const first = highest + 1n
  const wanted = (BigInt(shard) + 1n) % count
  return first + ((((wanted - first) % count) + count) % count)
}

/**
 * The statements for one sequence, of which `states` has one state a shard; none when it is disjoint, falls or
 * is not on every shard (undefined).
 */
export function sequenceChanges(states: readonly SequenceState[]): SequenceChange[] | undefined {
  if (states.length < 2) return []
  if (states.some((state) => state.increment < 0n)) return undefined
  if (isDisjoint(states)) return []
  let highest = 0n
  for (const { drawn } of states) if (drawn > highest) highest = drawn
  return states.map((state, shard) => ({
    shard,
    schema: state.schema,
    name: state.name,
    sql: `ALTER SEQUENCE ${qualifiedName(state)} INCREMENT BY ${states.length} RESTART WITH ${nextValue(highest, shard, states.length)};\n`,
  }))
}

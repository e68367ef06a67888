/**
 * Sequences of the new side set ahead of all that the old side gave out. Those behind tables that are sharded on the new
 * side are made disjoint: shard j of M draws numbers that leave j + 1 when divided by M.
 */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteLiteral } from '../../pg/sql-names.js'
import { type MovePlan, tableLabel } from '../move-table.js'
import { onEachShard, type ReshardSide } from '../side.js'

interface SequenceState {
  /** Quoted, with its schema. */
  readonly name: string
  readonly last: bigint | undefined
  readonly increment: bigint
  /** Tables that own it or draw from it. */
  readonly tables: readonly string[]
}

// A sequence is of a table when it is owned by it or stands in a column's default.
const query = `
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name, s.seqincrement::text AS increment,
       pg_sequence_last_value(c.oid)::text AS last,
       (SELECT json_agg(DISTINCT tn.nspname || '.' || t.relname) FROM (
          SELECT d.refobjid AS relid FROM pg_depend d
           WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass
             AND d.deptype IN ('a', 'i')
          UNION SELECT a.adrelid FROM pg_depend d JOIN pg_attrdef a ON a.oid = d.objid
           WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
        ) used JOIN pg_class t ON t.oid = used.relid JOIN pg_namespace tn ON tn.oid = t.relnamespace)::text AS tables
  FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgshard') AND n.nspname !~ '^pg_'
   AND c.relpersistence <> 't'`

/** Connections that are open already, by shard. */
export interface OpenSides {
  readonly sources: readonly HostClient[]
  readonly targets: readonly HostClient[]
}

async function readSequences(
  side: ReshardSide,
  clients?: readonly HostClient[],
): Promise<SequenceState[][]> {
  return onEach(side, clients, async (client) => {
    const rows = await adminQuery(client, query)
    return rows.map((row) => ({
      name: row['name'] as string,
      last: row['last'] === null || row['last'] === undefined ? undefined : BigInt(row['last']),
      increment: BigInt(row['increment'] ?? 1),
      tables: row['tables'] ? ((JSON.parse(row['tables']) as string[] | null) ?? []) : [],
    }))
  })
}

function onEach<T>(
  side: ReshardSide,
  clients: readonly HostClient[] | undefined,
  work: (client: HostClient, shard: number) => Promise<T>,
): Promise<T[]> {
  return clients ? Promise.all(clients.map(work)) : onEachShard(side, work)
}

/** In which form the next number is set. */
type Setting = (name: string, next: bigint, increment: bigint) => string

const setNow: Setting = (name, next, increment) =>
  `ALTER SEQUENCE ${name} INCREMENT BY ${increment}; ` +
  `SELECT setval(${quoteLiteral(name)}::regclass, ${next}, false);`

/** Undone with its transaction. */
const setWithin: Setting = (name, next, increment) =>
  `ALTER SEQUENCE ${name} INCREMENT BY ${increment} RESTART WITH ${next};`

/** The SQL for one sequence on one target; undefined when no source has drawn from it and it stays as it is. */
export function sequenceSql(
  states: readonly SequenceState[],
  target: { shard: number; count: number; isSharded: boolean },
  set: Setting = setNow,
): string | undefined {
  const [{ name, increment }] = states as [SequenceState]
  const drawn = states.flatMap(({ last }) => (last === undefined ? [] : [last]))
  const sources = BigInt(states.length)
  const count = BigInt(target.count)
  const plain = [1n, sources, count]
  const isPlain = states.every((state) => plain.includes(state.increment))
  if (target.isSharded && target.count > 1 && isPlain) {
    let highest = 0n
    for (const value of drawn) if (value > highest) highest = value
    const next = (highest / count + 1n) * count + BigInt(target.shard) + 1n
    return set(name, next, count)
  }
  if (drawn.length === 0) return undefined
  const furthest = drawn.reduce((a, b) => (increment > 0n === a > b ? a : b))
  return `SELECT setval(${quoteLiteral(name)}::regclass, ${furthest}, true);`
}

/** Sets every sequence of the targets ahead. Call when the sources give out no more numbers. */
export async function advanceSequences(
  source: ReshardSide,
  target: ReshardSide,
  plan: MovePlan,
  open?: OpenSides,
): Promise<number> {
  const states = byName(await readSequences(source, open?.sources))
  await onEach(target, open?.targets, async (client, shard) => {
    const sql = aheadSql(states, plan, shard)
    if (sql !== '') await adminQuery(client, sql)
  })
  return states.size
}

/** The same as SQL for each target, for transactions that may be rolled back: the old side goes on drawing as before then. */
export async function sequencesAhead(
  source: ReshardSide,
  target: ReshardSide,
  plan: MovePlan,
): Promise<string[]> {
  const states = byName(await readSequences(source))
  return [...target.shards.keys()].map((shard) => aheadSql(states, plan, shard, setWithin))
}

type States = ReadonlyMap<string, readonly SequenceState[]>

function byName(all: readonly (readonly SequenceState[])[]): States {
  const states = new Map<string, SequenceState[]>()
  for (const state of all.flat()) {
    states.set(state.name, [...(states.get(state.name) ?? []), state])
  }
  return states
}

function aheadSql(states: States, plan: MovePlan, shard: number, set?: Setting): string {
  const sharded = new Set(
    plan.tables.filter((table) => table.to.kind === 'sharded').map((table) => tableLabel(table)),
  )
  const parts = [...states.values()].map((same) => {
    const isSharded = same.some(({ tables }) => tables.some((label) => sharded.has(label)))
    return sequenceSql(same, { shard, count: plan.targetCount, isSharded }, set)
  })
  return parts.filter((part) => part !== undefined).join('\n')
}

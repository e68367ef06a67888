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

/** The SQL for one sequence on one target; undefined when no source has drawn from it and it stays as it is. */
export function sequenceSql(
  states: readonly SequenceState[],
  target: { shard: number; count: number; isSharded: boolean },
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
    return (
      `ALTER SEQUENCE ${name} INCREMENT BY ${count}; ` +
      `SELECT setval(${quoteLiteral(name)}::regclass, ${next}, false);`
    )
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
  const states = new Map<string, SequenceState[]>()
  for (const state of (await readSequences(source, open?.sources)).flat()) {
    states.set(state.name, [...(states.get(state.name) ?? []), state])
  }
  const sharded = new Set(
    plan.tables.filter((table) => table.to.kind === 'sharded').map((table) => tableLabel(table)),
  )
  await onEach(target, open?.targets, async (client, shard) => {
    const parts = [...states.values()].map((same) => {
      const isSharded = same.some(({ tables }) => tables.some((label) => sharded.has(label)))
      return sequenceSql(same, { shard, count: plan.targetCount, isSharded })
    })
    const sql = parts.filter((part) => part !== undefined).join('\n')
    if (sql !== '') await adminQuery(client, sql)
  })
  return states.size
}

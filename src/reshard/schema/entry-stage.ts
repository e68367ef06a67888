/** When each object of a dump's second section is made. Pure. */
import type { SchemaDump, SchemaEntry } from './dump-schema.js'

/**
 * `keys`: before changes are applied. `unique`: when all parts of the copy are of one moment.
 * `late`: when nothing that we apply can trip over it, or fire it.
 */
export type EntryStage = 'keys' | 'unique' | 'late'

const lateTypes = new Set(['FK CONSTRAINT', 'TRIGGER', 'EVENT TRIGGER', 'RULE'])

/** A unique index besides the primary key that is not the replica identity either: changes are not applied by it. */
const isOtherUnique = ({ sql }: SchemaEntry): boolean =>
  (/^CREATE UNIQUE INDEX /m.test(sql) || /\b(UNIQUE|EXCLUDE)\b[^;]*\(/.test(constraintOf(sql))) &&
  !/REPLICA IDENTITY USING INDEX/.test(sql)

const constraintOf = (sql: string): string =>
  /ADD CONSTRAINT (?:"(?:[^"]|"")*"|[^\s"]+) ((?:UNIQUE|EXCLUDE)[^;]*)/.exec(sql)?.[1] ?? ''

/** pg_dump names a constraint after its table: `orders orders_pkey`. */
const ownName = (entry: SchemaEntry): string => entry.name.split(' ').at(-1) ?? entry.name

/** Sorts the objects of a dump; the order within a stage is pg_dump's. */
export function stageEntries(
  entries: readonly SchemaEntry[],
): ReadonlyMap<SchemaEntry, EntryStage> {
  const unique = new Set(entries.filter(isOtherUnique).map(ownName))
  const stageOf = (entry: SchemaEntry): EntryStage => {
    if (lateTypes.has(entry.type)) return 'late'
    if (isOtherUnique(entry) || entry.type === 'COMMENT') return 'unique'
    const isAttach = entry.type === 'INDEX ATTACH'
    return isAttach && [...unique].some((name) => entry.sql.includes(name)) ? 'unique' : 'keys'
  }
  return new Map(entries.map((entry) => [entry, stageOf(entry)]))
}

export function entriesOf(dump: SchemaDump, stage: EntryStage): SchemaEntry[] {
  const stages = stageEntries(dump.after)
  return dump.after.filter((entry) => stages.get(entry) === stage)
}

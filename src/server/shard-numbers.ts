/**
 * Numbers (oids) of types and tables that users made differ between the databases of the shards, and a client knows those of
 * shard 0, whose catalogs it reads. Descriptions of other shards are told in them, and types that a client declares are told to
 * a shard in its own (hard-parts §5). Only numbers are exchanged, so that frames keep their length.
 */
import { backend } from '../wire/tags.js'

/** Types and tables below this number are PostgreSQL's own, and the same everywhere. */
export const FIRST_USER_OID = 16_384

/** Of one database that is not shard 0: its own number → that of shard 0. */
export interface ShardNumbers {
  readonly types: ReadonlyMap<number, number>
  readonly tables: ReadonlyMap<number, number>
}

/** What is known of one database now; absent: its numbers are told as they are. */
export interface NumbersHolder {
  current?: ShardNumbers | undefined
}

const CSTRING_END = 0

/** Exchanges the numbers in a RowDescription or ParameterDescription that begins at `start`; other frames stay as they are. */
export function tellAtHome(buffer: Buffer, start: number, numbers: ShardNumbers): void {
  const tag = buffer[start]
  if (tag === backend.rowDescription) tellColumns(buffer, start + 5, numbers)
  else if (tag === backend.parameterDescription) {
    const count = buffer.readUInt16BE(start + 5)
    for (let i = 0; i < count; i++) exchange(buffer, start + 7 + i * 4, numbers.types)
  }
}

function tellColumns(buffer: Buffer, start: number, { types, tables }: ShardNumbers): void {
  const count = buffer.readUInt16BE(start)
  let at = start + 2
  for (let i = 0; i < count; i++) {
    // name · Int32 table · Int16 column · Int32 type · Int16 size · Int32 modifier · Int16 format
    at = buffer.indexOf(CSTRING_END, at) + 1
    exchange(buffer, at, tables)
    exchange(buffer, at + 6, types)
    at += 18
  }
}

function exchange(buffer: Buffer, at: number, by: ReadonlyMap<number, number>): void {
  const number = buffer.readUInt32BE(at)
  if (number < FIRST_USER_OID) return
  const home = by.get(number)
  if (home !== undefined) buffer.writeUInt32BE(home, at)
}

/** Types as the client declares them → as this shard numbers them. */
export function typesOnShard(
  types: readonly number[],
  numbers: ShardNumbers | undefined,
): readonly number[] {
  if (!numbers || types.every((type) => type < FIRST_USER_OID)) return types
  const own = new Map([...numbers.types].map(([there, home]) => [home, there]))
  return types.map((type) => own.get(type) ?? type)
}

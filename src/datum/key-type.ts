/** Types whose values can be sharding keys; each has a reader in `key-reader.ts`. Imports nothing, so that flags can list them. */

export const keyTypes = [
  'bigint',
  'integer',
  'smallint',
  'uuid',
  'text',
  'varchar',
  'bpchar',
  'numeric',
  'date',
  'timestamp',
  'timestamptz',
] as const

export type HashedKeyType = (typeof keyTypes)[number]

/** Those that can be hashed, and pgvector's type, which is placed by the nearest centre only. */
export type KeyType = HashedKeyType | 'vector'

/** OIDs of the column types that each may stand for: same hash, same equality, no wider range. */
export const columnTypesOf: Readonly<Record<KeyType, readonly number[]>> = {
  bigint: [20, 21, 23],
  integer: [21, 23],
  smallint: [21],
  text: [25, 1043],
  varchar: [25, 1043],
  bpchar: [1042],
  uuid: [2950],
  numeric: [1700],
  date: [1082],
  timestamp: [1114],
  timestamptz: [1184],
  // An extension's type has another OID in each database: it is known by its name.
  vector: [],
}

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

export type KeyType = (typeof keyTypes)[number]

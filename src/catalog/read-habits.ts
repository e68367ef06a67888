/** What a shard does with values beyond what its tables say: settings that change how they are read, ordered and written. */
import type { Query } from './read-catalog.js'

export interface Habit {
  /** As a client would SET it; a database's own, which nobody can set, has blanks in it. */
  readonly name: string
  readonly value: string
}

const settings = [
  'TimeZone',
  'DateStyle',
  'IntervalStyle',
  'extra_float_digits',
  'bytea_output',
  'lc_monetary',
]

const habitsSql = `
SELECT s.name, pg_catalog.current_setting(s.name) FROM pg_catalog.unnest(ARRAY[${settings.map((name) => `'${name}'`).join(', ')}]) AS s(name)
UNION ALL SELECT 'server encoding', pg_catalog.current_setting('server_encoding')
UNION ALL SELECT 'default collation', pg_catalog.concat_ws(' ', to_jsonb(d)->>'datcollate', to_jsonb(d)->>'datlocprovider', coalesce(to_jsonb(d)->>'datlocale', to_jsonb(d)->>'daticulocale'))
  FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()`

export async function readHabits(query: Query): Promise<readonly Habit[]> {
  return (await query(habitsSql)).map(([name, value]) => ({ name: name ?? '', value: value ?? '' }))
}

/** Two shards that would not do the same. */
export interface ShardDifference {
  readonly name: string
  readonly shard: number
  readonly value: string
  /** Of shard 0. */
  readonly home: string
}

/** What one shard does otherwise than shard 0. */
export function differencesOf(
  shard: number,
  own: readonly Habit[],
  home: readonly Habit[],
): ShardDifference[] {
  return home.flatMap(({ name, value }) => {
    const here = own.find((one) => one.name === name)?.value ?? value
    return here === value ? [] : [{ name, shard, value: here, home: value }]
  })
}

/** Which rows move, said in SQL, is what the placer says, for every type of key. */
import { expect, test } from 'vitest'
import type { KeyType } from '../../../src/datum/key-type.js'
import { inBucketsSql } from '../../../src/sharding/key-hash-sql.js'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'
import type { HashPlacement } from '../../../src/sharding/sharded-table.js'
import { usePostgres } from '../../support/use-postgres.js'

const postgres = usePostgres({ version: 15 })

/** SQL of some values of each type, of which n is a number from 1. */
const values: readonly (readonly [KeyType, string])[] = [
  ['bigint', '(n * 7919 - 400000) * CASE WHEN n % 3 = 0 THEN 4294967297 ELSE 1 END'],
  ['integer', '(n * 7919 - 900000)::integer'],
  ['smallint', '(n - 150)::smallint'],
  ['uuid', 'md5(n::text)::uuid'],
  ['text', `repeat('é', n % 5) || n`],
  ['varchar', `'k' || n`],
  ['bpchar', `('b' || n)::char(12)`],
  ['numeric', '(n - 150) / 8.0'],
  ['date', `date '1999-06-01' + n * 3`],
  ['timestamp', `timestamp '1999-06-01 10:00' + n * interval '7 hours'`],
  ['timestamptz', `timestamptz '1999-06-01 10:00+02' + n * interval '7 hours'`],
]

test.each(values)(
  'O1: rows of some buckets by %s are those that the placer names',
  async (keyType, sql) => {
    const client = await postgres().connect(0, await postgres().createDatabase())
    try {
      await client.query(`CREATE TABLE t AS SELECT ${sql} AS k FROM generate_series(1, 300) n`)
      await client.query('INSERT INTO t VALUES (NULL)')
      // A power of two, a small modulus and the largest that the configuration takes.
      for (const buckets of [32, 24, 65_535]) {
        const bucketMap = Array.from({ length: buckets }, (_, bucket) => (bucket % 7 === 3 ? 1 : 0))
        for (const ofNull of [0, 1]) {
          const placement: HashPlacement = {
            ...{ kind: 'hash', hasher: 'postgres', buckets },
            bucketMap: [ofNull, ...bucketMap.slice(1)],
          }
          const wanted = [...placement.bucketMap.keys()].filter((b) => placement.bucketMap[b] === 1)
          const moving = inBucketsSql(placement, keyType, '"k"', wanted)
          const { rows } = await client.query(`SELECT k::text AS k, (${moving}) AS moves FROM t`)
          const placer = makeKeyPlacer({ column: 'k', keyType, placement })
          for (const { k, moves } of rows) {
            const shard = k === null ? placer.ofNull() : placer.ofString(k)
            expect(shard === 1, `${k} of ${buckets}`).toBe(moves)
          }
        }
      }
    } finally {
      await client.end()
    }
  },
)

/** Sums of floats are written as PostgreSQL writes them: the same digits for every kind of value. */
import { expect, it } from 'vitest'
import { textOfFloat } from '../../../src/merge/aggregates/float-text.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'

const postgres = usePostgres({ version: 15 })
const COUNT = bySize(10_000, 100_000)

/** Ties that are rounded to even, ends of the ranges, powers of two, and random ones of every size. */
const values = {
  float8: `select unnest(array['1e23','9e15','1e15','999999999999999','1e-5','0.0001','5e-324','9007199254740993','8.5e22','-0','0']::float8[]) x
    union all select (random() * 2 - 1) * 10 ^ (random() * 600 - 300)::int from generate_series(1, ${COUNT})
    union all select 2::float8 ^ (n - 1000) from generate_series(1, 2000) n`,
  float4: `select unnest(array['2e-44','1e6','999999','1e-4','80.09219','-0']::float4[]) x
    union all select ((random() * 2 - 1) * 10 ^ (random() * 70 - 35)::int)::float4 from generate_series(1, ${COUNT})
    union all select (2::float8 ^ (n - 140))::float4 from generate_series(1, 260) n`,
} as const

it.each(['float8', 'float4'] as const)('D125: %s', async (type) => {
  const rows = await postgres().query(
    `select x::text as text, ${type}send(x) as bytes from (${values[type]}) s`,
  )
  const wrong = rows.flatMap(({ text, bytes }) => {
    const read = bytes as Buffer
    const ours = textOfFloat(type === 'float8' ? read.readDoubleBE() : read.readFloatBE(), type)
    return ours === text ? [] : [`${ours} for ${String(text)}`]
  })
  expect(wrong).toEqual([])
  expect(rows.length).toBeGreaterThan(COUNT)
})

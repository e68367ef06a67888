/**
 * PostgreSQL is the oracle: a file copied whole into one table, and the same file split over three.
 * Same rows, each on the shard of its key; or the same SQLSTATE, and the same line where the splitter refuses.
 * PGSHARD_COPY_CASES sets how many random files a version gets; a failure prints the seed.
 */
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { describe, expect, it } from 'vitest'
import { parseCopyOptions } from '../../src/copy/copy-options.js'
import { makeRowRouter } from '../../src/copy/row-router.js'
import { makeKeyPlacer } from '../../src/sharding/key-placer.js'
import { usePostgres } from '../support/use-postgres.js'
import { type CopyCase, makeCopyCase } from './copy-dialects.js'

const CASES = Number(
  process.env['PGSHARD_COPY_CASES'] ?? (process.env['PGSHARD_FULL'] ? 20_000 : 300),
)
const SHARDS = 3
const COLUMNS = ['id', 'a', 'b']

interface Outcome {
  rows?: string[]
  code?: string
  message?: string
  line?: string
}

const lineOf = (where: string | undefined) => /line \d+/.exec(where ?? '')?.[0]

function copySql(table: string, one: CopyCase): string {
  const literal = (text: string) => `'${text.replaceAll("'", "''")}'`
  const written = Object.entries(one.options).map(([name, value]) =>
    name === 'format' || name === 'header' ? `${name} ${value}` : `${name} ${literal(value)}`,
  )
  if (one.forceNull) written.push('force_null (id, a)')
  if (one.forceNotNull) written.push('force_not_null (b)')
  return `copy ${table} from stdin (${written.join(', ')})`
}

function copyInto(client: pg.Client, sql: string, data: Buffer): Promise<Outcome> {
  return new Promise((resolve) => {
    const stream = client.query(copyFrom(sql))
    stream.on('error', (error: Error & { code?: string; where?: string }) => {
      const line = lineOf(error.where)
      resolve({ code: error.code ?? '?', message: error.message, ...(line ? { line } : {}) })
    })
    stream.on('finish', () => resolve({}))
    stream.end(data)
  })
}

async function rowsOf(client: pg.Client, table: string): Promise<string[][]> {
  const { rows } = await client.query({
    text: `select id::text, a, b from ${table}`,
    rowMode: 'array',
  })
  return rows as string[][]
}

async function copyWhole(client: pg.Client, one: CopyCase): Promise<Outcome> {
  await client.query('begin')
  const outcome = await copyInto(client, copySql('t', one), one.data)
  if (outcome.code === undefined) {
    outcome.rows = (await rowsOf(client, 't')).map((row) => JSON.stringify(row)).sort()
  }
  await client.query('rollback')
  return outcome
}

/** The router's error and those of the shards, which come first because their rows do. */
async function copySplit(client: pg.Client, one: CopyCase, serverMajor: number) {
  const placer = makeKeyPlacer({
    column: 'id',
    keyType: one.keyType,
    placement: { kind: 'hash', hasher: 'postgres', buckets: SHARDS, bucketMap: [0, 1, 2] },
  })
  const parts = Array.from({ length: SHARDS }, (): Buffer[] => [])
  const options = parseCopyOptions({
    direction: 'in',
    options: [
      ...Object.entries(one.options).map(([name, value]) => ({ name, value })),
      ...(one.forceNull ? [{ name: 'force_null', list: ['id', 'a'] }] : []),
      ...(one.forceNotNull ? [{ name: 'force_not_null', list: ['b'] }] : []),
    ],
  })
  const router = makeRowRouter({
    options,
    layout: { table: 't', columns: columnsOf(one), keyIndex: one.keyIndex, serverMajor },
    shardCount: SHARDS,
    placer,
    onBatch: (shard, bytes) => parts[shard]!.push(bytes),
  })
  let refused: Outcome | undefined
  try {
    for (let at = 0; at < one.data.length; at += one.chunkBytes) {
      const chunk = Buffer.from(one.data.subarray(at, at + one.chunkBytes))
      router.push(chunk)
      chunk.fill(0x23)
    }
    router.finish()
  } catch (error) {
    const { sqlstate, message, where } = error as {
      sqlstate: string
      message: string
      where: string
    }
    const line = lineOf(where)
    refused = { code: sqlstate, message, ...(line ? { line } : {}) }
  }
  await client.query('begin')
  const failures: Outcome[] = []
  const rows: string[] = []
  for (const [shard, buffers] of parts.entries()) {
    await client.query('savepoint s')
    const outcome = await copyInto(client, copySql(`t${shard}`, one), Buffer.concat(buffers))
    if (outcome.code !== undefined) {
      failures.push(outcome)
      await client.query('rollback to s')
      continue
    }
    for (const row of await rowsOf(client, `t${shard}`)) {
      const key = row[0]
      const home = key === null || key === undefined ? placer.ofNull() : placer.ofString(key)
      expect(home, `shard of ${JSON.stringify(row)}`).toBe(shard)
      rows.push(JSON.stringify(row))
    }
  }
  await client.query('rollback')
  return { failures, refused, rows: rows.sort() }
}

/** Column order of the file: the key stands where the case wants it. */
function columnsOf(one: CopyCase): string[] {
  const others = COLUMNS.slice(1)
  return [...others.slice(0, one.keyIndex), 'id', ...others.slice(one.keyIndex)]
}

async function prepare(client: pg.Client, one: CopyCase, known: { shape: string }): Promise<void> {
  const shape = `${one.keyType} ${one.keyIndex}`
  if (known.shape === shape) return
  known.shape = shape
  const columns = columnsOf(one).map((name) => `${name} ${name === 'id' ? one.keyType : 'text'}`)
  for (const table of ['t', 't0', 't1', 't2'])
    await client.query(
      `drop table if exists ${table}; create unlogged table ${table} (${columns.join(', ')})`,
    )
}

describe.each([15, 18] as const)('against PostgreSQL %i', (version) => {
  const postgres = usePostgres({ version })

  it(
    'splits what it accepts and refuses what it refuses',
    async () => {
      const client = await postgres().connect()
      const known = { shape: '' }
      const counts = { accepted: 0, refused: 0 }
      const seeds = Array.from({ length: CASES }, (_, index) => index + 1)
      // By shape, so that tables are made six times only.
      const cases = seeds.map(makeCopyCase).sort((a, b) => shapeOf(a) - shapeOf(b))
      for (const one of cases) {
        await prepare(client, one, known)
        const whole = await copyWhole(client, one)
        const split = await copySplit(client, one, version)
        const note = `seed ${one.seed}: ${copySql('t', one)} in pieces of ${one.chunkBytes}: ${JSON.stringify(one.data.toString())}\nwhole ${JSON.stringify(whole)}\nsplit ${JSON.stringify(split)}`
        if (whole.rows !== undefined) {
          counts.accepted++
          expect(split, note).toEqual({ failures: [], refused: undefined, rows: whole.rows })
        } else if (split.failures.length > 0) {
          counts.refused++
          expect(
            split.failures.map(({ code }) => code),
            note,
          ).toContain(whole.code)
        } else {
          counts.refused++
          expect(split.refused?.code, note).toBe(whole.code)
          expect(split.refused?.line, note).toBe(whole.line)
          if (whole.code === '22P04') expect(split.refused?.message, note).toBe(whole.message)
        }
      }
      expect(counts.accepted).toBeGreaterThan(CASES / 4)
      expect(counts.refused).toBeGreaterThan(CASES / 20)
      await client.end()
    },
    Math.max(60_000, CASES * 60),
  )
})

const shapeOf = (one: CopyCase): number => one.keyIndex * 2 + (one.keyType === 'text' ? 0 : 1)

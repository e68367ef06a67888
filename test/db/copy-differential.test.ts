/**
 * PostgreSQL is the oracle: a file copied whole into one table, the same file through serve over three shards, and through the
 * engine of `copy-shard --single-transaction`. The same rows, each on the shard of its key, and the same tag; or the same error
 * with its line, and no rows. PGSHARD_COPY_CASES sets how many random files a version gets, PGSHARD_COPY_SEED where they begin;
 * a failure prints the seed.
 */
import { Readable } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { type CopyOptions, parseCopyOptions } from '../../src/copy/copy-options.js'
import { contextLine } from '../../src/copy/line-map.js'
import { isEngineError } from '../../src/errors/engine-error.js'
import { placeByColumn } from '../../src/load/request/load-options.js'
import { loadCopy } from '../../src/load/whole/load-copy.js'
import { type KeyPlacer, makeKeyPlacer } from '../../src/sharding/key-placer.js'
import { runCli } from '../support/run-cli.js'
import { type Served, startServe, writeServeConfig } from '../support/serve.js'
import { bySize } from '../support/test-size.js'
import { usePostgres } from '../support/use-postgres.js'
import { type CopyCase, copySqlOf, makeCopyCase } from './copy-dialects.js'

/** Connections of the engine that wait for the next load: opening a dozen for each of 20,000 would be most of the work. */
const kept = vi.hoisted(() => ({
  idle: new Map<string, pg.Client[]>(),
  urls: new WeakMap<pg.Client, string>(),
}))
vi.mock('../../src/pg/connect.js', async (importActual) => {
  const actual = await importActual<typeof import('../../src/pg/connect.js')>()
  const connectPg: typeof actual.connectPg = async (target, options) => {
    const client = kept.idle.get(String(target))?.pop()
    if (client !== undefined) return client
    const made = await actual.connectPg(target, options)
    kept.urls.set(made, String(target))
    return made
  }
  return { ...actual, connectPg }
})
vi.mock('../../src/pg/admin-query.js', async (importActual) => {
  const actual = await importActual<typeof import('../../src/pg/admin-query.js')>()
  const keepOr =
    (close: (client: pg.Client) => Promise<void>) =>
    async (client: pg.Client): Promise<void> => {
      const url = kept.urls.get(client)
      if (url === undefined) return await close(client)
      // What the last load wanted to hear of it.
      client.removeAllListeners('end')
      kept.idle.set(url, [...(kept.idle.get(url) ?? []), client])
    }
  const closePg = keepOr(actual.closePg)
  const leavePg = keepOr(actual.leavePg)
  return { ...actual, closePg, leavePg }
})

/** 20,000 over the four versions. */
const CASES = Number(process.env['PGSHARD_COPY_CASES'] ?? bySize(60, 5000))
const FIRST_SEED = Number(process.env['PGSHARD_COPY_SEED'] ?? 1)
const SHARDS = 3

const tables = ['text', 'bigint'].flatMap((key) =>
  ['text', 'int'].map((other) => ({ name: `t_${key}_${other}`, key, other })),
)
const schema = tables
  .map(
    ({ name, key, other }) =>
      `create unlogged table ${name} (gone int, id ${key}, made text generated always as ('m') stored, a text, b ${other}); alter table ${name} drop column gone;`,
  )
  .join('\n')
const sharding = tables
  .map(
    ({ name, key }) =>
      `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "id"\ndata_type = "${key}"`,
  )
  .join('\n')
const tableOf = (one: CopyCase) => `t_${one.keyType}_${one.otherType}`

interface Outcome {
  /** As one text each, sorted. */
  readonly rows: readonly string[]
  readonly tag?: number
  readonly error?: { code: string; message: string; where: string | undefined }
}

function copyInto(client: pg.Client, sql: string, one: CopyCase): Promise<Omit<Outcome, 'rows'>> {
  return new Promise((resolve) => {
    const stream = client.query(copyFrom(sql))
    stream.on(
      'error',
      ({ code = '?', message, where }: Error & { code?: string; where?: string }) =>
        resolve({ error: { code, message, where } }),
    )
    stream.on('finish', () => resolve({ tag: stream.rowCount }))
    for (const chunk of chunksOf(one)) stream.write(chunk)
    stream.end()
  })
}

function* chunksOf(one: CopyCase): Generator<Buffer> {
  for (let at = 0; at < one.data.length; at += one.chunkBytes)
    yield Buffer.from(one.data.subarray(at, at + one.chunkBytes))
}

/** The rows of a table, which is empty then. */
async function takeRows(client: pg.Client, table: string): Promise<(string | null)[][]> {
  const sql = `delete from ${table} returning id::text, a, b::text`
  return (await client.query<(string | null)[]>({ text: sql, rowMode: 'array' })).rows
}

/** The options of a case as flags of `copy-shard` give them; undefined: it has no such flags. */
function engineOptions(one: CopyCase): CopyOptions | undefined {
  const others = ['default', 'on_error', 'log_verbosity', 'freeze', 'bogus']
  if (others.some((name) => name in one.options)) return undefined
  try {
    return parseCopyOptions({
      direction: 'in',
      options: [
        ...Object.entries(one.options).map(([name, value]) => ({ name, value })),
        ...(one.forceNull.length > 0 ? [{ name: 'force_null', list: one.forceNull }] : []),
        ...(one.forceNotNull.length > 0
          ? [{ name: 'force_not_null', list: one.forceNotNull }]
          : []),
      ],
    })
  } catch {
    return undefined
  }
}

async function loadByEngine(
  one: CopyCase,
  options: CopyOptions,
  urls: readonly string[],
): Promise<Omit<Outcome, 'rows'>> {
  const request = {
    inputs: [{ name: 'input', open: () => Readable.from(chunksOf(one)) }],
    compression: 'none' as const,
    urls,
    table: tableOf(one),
    columns: one.columns,
    options,
    jobs: 1,
    isDryRun: false,
    verifies: false,
    isTwoPhase: true,
    placementOf: (table: Parameters<typeof placeByColumn>[1]) =>
      placeByColumn({ column: 'id' }, table, urls.length),
  }
  const signal = new AbortController().signal
  try {
    const report = await loadCopy(request, {
      clock: systemClock,
      signal,
      onProgress: () => undefined,
    })
    return { tag: report.written }
  } catch (error) {
    if (!isEngineError(error)) throw error
    const { sqlstate: code, message, where } = error
    return { error: { code, message, where } }
  }
}

describe.each([15, 16, 17, 18] as const)(
  'D135, D137, D138, D139, D140, D220: COPY against PostgreSQL %i',
  (version) => {
    const postgres = usePostgres({ version })
    const databases: string[] = []
    const shards: pg.Client[] = []
    const placers = new Map<string, KeyPlacer>(
      (['text', 'bigint'] as const).map((keyType) => [
        keyType,
        makeKeyPlacer({
          column: 'id',
          keyType,
          placement: { kind: 'hash', hasher: 'postgres', buckets: SHARDS, bucketMap: [0, 1, 2] },
        }),
      ]),
    )
    let whole: pg.Client
    let served: Served
    let over: pg.Client

    beforeAll(async () => {
      const { host, port } = postgres().servers[0]!
      whole = await postgres().connect()
      await whole.query(schema)
      for (let shard = 0; shard < SHARDS; shard++) {
        databases.push(await postgres().createDatabase())
        shards.push(await postgres().connect(0, databases[shard]))
        await shards[shard]!.query(schema)
      }
      const setup = {
        shards: databases.map((database) => ({ host, port, database })),
        tables: sharding,
      }
      const { configPath, usersPath } = writeServeConfig(setup)
      const made = await runCli(['setup', '-c', configPath, '-u', usersPath])
      expect(made.code, made.stderr).toBe(0)
      served = await startServe(setup)
      over = await served.connect()
    })
    afterAll(async () => {
      await Promise.all([...kept.idle.values()].flat().map((client) => client.end()))
      kept.idle.clear()
      await over?.end()
    })

    async function copyWhole(one: CopyCase): Promise<Outcome> {
      const table = tableOf(one)
      const outcome = await copyInto(whole, copySqlOf(table, one), one)
      return { ...outcome, rows: textsOf(await takeRows(whole, table)) }
    }

    /** What a load has left on the shards, each row where its key belongs. */
    async function gather(one: CopyCase): Promise<string[]> {
      const placer = placers.get(one.keyType)!
      const all: (string | null)[][] = []
      for (const [shard, client] of shards.entries()) {
        for (const row of await takeRows(client, tableOf(one))) {
          const home = row[0] == null ? placer.ofNull() : placer.ofString(row[0])
          expect(home, `shard of ${JSON.stringify(row)}`).toBe(shard)
          all.push(row)
        }
      }
      return textsOf(all)
    }

    const textsOf = (rows: (string | null)[][]) => rows.map((row) => JSON.stringify(row)).sort()

    it(
      'does what one server does, through serve and through copy-shard --single-transaction',
      async () => {
        const counts = { accepted: 0, refused: 0, loaded: 0 }
        const differences: string[] = []
        const compare = (found: object, expected: object, note: string) => {
          if (isDeepStrictEqual(found, expected)) return
          differences.push(
            `${note}\n  wanted ${JSON.stringify(expected)}\n  found  ${JSON.stringify(found)}`,
          )
        }
        for (let seed = FIRST_SEED; seed < FIRST_SEED + CASES && differences.length < 5; seed++) {
          const one = makeCopyCase(seed, version)
          const sql = copySqlOf(tableOf(one), one)
          const wanted = await copyWhole(one)
          const note = `seed ${seed}: ${sql} in pieces of ${one.chunkBytes}: ${JSON.stringify(one.data.toString('latin1'))}`
          const served = { ...(await copyInto(over, sql, one)), rows: await gather(one) }
          if (isUnplaceable(served)) {
            compare(served.rows, [], note)
            continue
          }
          compare(ofServe(served, one), ofServe(wanted, one), note)
          counts[wanted.error === undefined ? 'accepted' : 'refused']++
          const options = engineOptions(one)
          if (options === undefined) continue
          const urls = databases.map((database) => postgres().url(0, database))
          const loaded = { ...(await loadByEngine(one, options, urls)), rows: await gather(one) }
          counts.loaded++
          compare(ofEngine(loaded), ofEngine(wanted), `${note} by copy-shard`)
        }
        expect(differences.join('\n')).toBe('')
        expect(counts.accepted).toBeGreaterThan(CASES / 4)
        expect(counts.refused).toBeGreaterThan(CASES / 10)
        expect(counts.loaded).toBeGreaterThan(CASES / 2)
      },
      Math.max(120_000, CASES * 1000),
    )
  },
)

/** A row that asks for the default of the sharding key (docs/limits.md). */
const isUnplaceable = ({ error }: Outcome): boolean =>
  error?.message === 'cannot place a row whose sharding key is a default'

/**
 * With ON_ERROR a CONTEXT may speak of a column of the last row that was skipped, which another shard has had. Bytes that are
 * no character are named with those that follow, and found where the server reads, which may be another line of the row, or
 * the line before it: rows of other shards do not stand between.
 */
function ofServe(outcome: Outcome, one: CopyCase): object {
  const { error } = outcome
  if (error === undefined) return outcome
  if (error.code === '22021') return { ...outcome, error: error.code }
  const where = 'on_error' in one.options ? contextLine(error.where) : error.where
  return { ...outcome, error: { ...error, where } }
}

/** copy-shard names the file beside the line. */
function ofEngine({ error, rows, tag }: Outcome): object {
  if (error === undefined) return { rows, tag }
  const line = error.code === '22021' ? undefined : contextLine(error.where)
  return { rows, code: error.code, line }
}

/** The same load started twice at the same moment: one may fail, but no row is there twice, and nobody waits for ever. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../support/run-cli.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 3
const ROWS = 30_000

describe('two runs of one load', () => {
  const postgres = usePostgres()
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-twice-'))
  const databases: string[] = []
  const on = async (database: string, sql: string) => {
    const client = await postgres().connect(0, database)
    try {
      return (await client.query<Record<string, number>>(sql)).rows
    } finally {
      await client.end()
    }
  }
  const everywhere = (sql: string) => Promise.all(databases.map((one) => on(one, sql)))

  beforeAll(async () => {
    for (let shard = 0; shard < SHARDS; shard++) databases.push(await postgres().createDatabase())
    await everywhere('create table t (id bigint, a text)')
    const lines = Array.from({ length: ROWS }, (_, id) => `${id},row "${id}" of many\n`)
    writeFileSync(join(directory, 'in.csv'), lines.join('').replaceAll('"', ''))
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it.each([[[]], [['--jobs', '2']]])(
    'D140: load each row once, with %j',
    async (flags) => {
      await everywhere('truncate t')
      const args = [
        ...['copy-shard', join(directory, 'in.csv'), '--table', 't', '--sharding-key', 'id'],
        ...['--batch-size', '100kB', '--quiet', ...flags],
        ...databases.flatMap((one) => ['--target', postgres().url(0, one)]),
      ]
      const runs = await Promise.all([
        runCli(args, { timeoutMs: 120_000 }),
        runCli(args, { timeoutMs: 120_000 }),
      ])
      for (const { code, stderr } of runs)
        if (code !== 0)
          expect(stderr).toMatch(/has not ended|has moved|another|checkpoint|concurrently|tuple/)
      // What neither has brought to its end is taken up.
      let hasEnded = runs.some(({ code }) => code === 0)
      for (let turn = 0; !hasEnded && turn < 3; turn++) {
        const { code, stderr } = await runCli([...args, '--resume'], { timeoutMs: 120_000 })
        expect([0, 5, 6], stderr).toContain(code)
        hasEnded = code === 0
      }
      expect(hasEnded).toBe(true)
      const found = await everywhere(
        'select count(*)::int as n, count(distinct id)::int as d from t',
      )
      const sum = (of: 'n' | 'd') => found.reduce((all, [row]) => all + row![of]!, 0)
      // Two that did not meet have each loaded all, as two runs one after the other do.
      const times = runs.every(({ code }) => code === 0) ? 2 : 1
      expect({ rows: sum('n'), keys: sum('d') }).toEqual({ rows: ROWS * times, keys: ROWS })
    },
    180_000,
  )
})

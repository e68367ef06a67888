/**
 * kill −9 of the program at the named points of a move, then `reshard resume`: the same end, and nothing left after cleanup.
 * The points are those of the journal's own list of steps; which file ends runs in which steps stands in `killedIn`.
 */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { faultPoints } from '../../../src/reshard/steps/steps.js'
import { shardEntries } from '../../support/live-shop.js'
import { runCli } from '../../support/run-cli.js'
import { usePostgres } from '../../support/use-postgres.js'

/** Steps by file: each runs for some minutes, so that a part can be run alone. */
export const killedIn = {
  copy: ['schema', 'copy'],
  follow: ['follow', 'verify'],
  switch: ['cutover', 'finish'],
} as const

export const pointsOf = (file: keyof typeof killedIn): string[] =>
  faultPoints.filter((point) =>
    (killedIn[file] as readonly string[]).includes(point.split(':')[0]!),
  )

/** One test for each point. */
export function testKills(points: readonly string[]): void {
  const postgres = usePostgres({
    version: 15,
    settings: { max_wal_senders: '40', max_replication_slots: '40' },
  })

  interface Shop {
    readonly config: string
    readonly from: readonly string[]
    readonly to: readonly string[]
  }

  async function makeShop(): Promise<Shop> {
    const create = async (count: number): Promise<string[]> => {
      const names: string[] = []
      for (let i = 0; i < count; i++) names.push(await postgres().createDatabase())
      return names
    }
    const [from, to] = [await create(2), await create(3)]
    const [server] = postgres().servers
    const entries = (name: string, databases: readonly string[]): string =>
      shardEntries(name, databases, server!.port) +
      `[[sharded_tables]]\ndatabase = "${name}"\ncolumn = "tenant"\ndata_type = "bigint"\n`
    const directory = await mkdtemp(join(inject('runDirectory'), 'pgshard-kill-'))
    const config = join(directory, 'pgdog.toml')
    await writeFile(config, `${entries('shop', from)}${entries('shop_new', to)}`)
    await writeFile(
      join(directory, 'users.toml'),
      `[[users]]\nname = "${postgres().user}"\npassword = "pw"\ndatabases = ["shop", "shop_new"]\n`,
    )
    for (const [shard, database] of from.entries()) {
      await on(
        database,
        `CREATE TABLE acct (tenant bigint, id bigint, v text, n int, PRIMARY KEY (tenant, id))`,
        `CREATE UNIQUE INDEX ON acct (tenant, n)`,
        // Which shard a tenant belongs to does not matter here: 1 is read on one source, 2 on the other.
        `INSERT INTO acct SELECT ${shard + 1}, t, repeat('x', 200), t FROM generate_series(1, 2000) t`,
      )
    }
    return { config, from, to }
  }

  async function on(database: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
    const client = await postgres().connect(0, database)
    try {
      let rows: Record<string, unknown>[] = []
      for (const sql of statements) rows = (await client.query(sql)).rows
      return rows
    } finally {
      await client.end()
    }
  }

  const reshard = (shop: Shop, command: string, flags: string[], fault?: string) =>
    runCli(
      [
        ...['reshard', command, '--config', shop.config, '--from', 'shop', '--to', 'shop_new'],
        ...flags,
      ],
      { timeoutMs: 60_000, ...(fault ? { env: { PGSHARD_FAULT: fault } } : {}) },
    )

  const isOfSwitch = (point: string): boolean => /^(cutover|finish):/.test(point)

  test.each(points)(
    'O1: kill −9 at %s, then resume',
    async (point) => {
      const shop = await makeShop()
      const goal = isOfSwitch(point) ? [] : ['--stop-after', 'verify']
      const flags = ['--yes', '--no-proxy', '--part-size', '100kB', ...goal]
      // Something must come through the streams, so that their points are reached.
      const killed = await reshard(shop, 'run', flags, point)
      expect(killed.signal, killed.stderr).toBe('SIGKILL')
      if (!isOfSwitch(point)) {
        for (const [shard, database] of shop.from.entries()) {
          await on(
            database,
            `UPDATE acct SET id = id + 10000, n = n + 5000 WHERE tenant = ${shard + 1} AND id % 7 = 0`,
            `DELETE FROM acct WHERE id % 11 = 0`,
          )
        }
      }
      const resumed = await reshard(shop, 'resume', [...flags, '--json'])
      expect(resumed.code, resumed.stderr).toBe(0)
      const report = JSON.parse(resumed.stdout)
      expect(report.state).toBe(isOfSwitch(point) ? 'cut_over' : 'ready')
      const count = async (databases: readonly string[]): Promise<number> => {
        const rows = await Promise.all(
          databases.map((name) =>
            on(name, 'SELECT count(*)::int AS n, sum(id + n) AS sum FROM acct'),
          ),
        )
        return rows.reduce((sum, [row]) => sum + Number(row!['n']) + Number(row!['sum'] ?? 0), 0)
      }
      expect(await count(shop.to)).toBe(await count(shop.from))
      const cleanup = await reshard(
        shop,
        'cleanup',
        isOfSwitch(point) ? ['--lift-fence', '--json'] : ['--drop-target', '--json'],
      )
      expect(cleanup.code, cleanup.stderr).toBe(0)
      for (const database of [...shop.from, ...shop.to]) {
        const left = await on(
          database,
          `SELECT slot_name::text AS name FROM pg_replication_slots WHERE database = current_database()
       UNION ALL SELECT pubname FROM pg_publication UNION ALL SELECT tgname FROM pg_trigger WHERE tgname LIKE 'pgshard%'`,
        )
        expect(left).toEqual([])
      }
    },
    120_000,
  )
}

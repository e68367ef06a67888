/** Moves started from the console of `serve`, seen, slowed, stopped, taken up again and switched there. */
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { runCli, startCli } from '../../support/run-cli.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const postgres = usePostgres({
  version: 15,
  settings: { max_wal_senders: '30', max_replication_slots: '30' },
})

async function makeShop(): Promise<{
  config: string
  users: string
  from: string[]
  to: string[]
}> {
  const entries: string[] = []
  const names: Record<string, string[]> = { shop: [], shop_new: [] }
  for (const [name, count] of [
    ['shop', 1],
    ['shop_new', 2],
  ] as const) {
    for (let shard = 0; shard < count; shard++) {
      const database = await postgres().createDatabase()
      names[name]?.push(database)
      entries.push(
        `[[databases]]\nname = "${name}"\nhost = "127.0.0.1"\nport = ${postgres().servers[0]!.port}\ndatabase_name = "${database}"\nshard = ${shard}\n`,
      )
    }
    entries.push(
      `[[sharded_tables]]\ndatabase = "${name}"\ncolumn = "tenant"\ndata_type = "bigint"\n`,
    )
  }
  const directory = await mkdtemp(join(inject('runDirectory'), 'pgshard-console-'))
  const [config, users] = [join(directory, 'pgdog.toml'), join(directory, 'users.toml')]
  await writeFile(
    config,
    `[general]\nhost = "127.0.0.1"\nport = 0\n[admin]\nuser = "admin"\npassword = "adm"\n${entries.join('')}`,
  )
  await writeFile(
    users,
    `[[users]]\nname = "${postgres().user}"\npassword = "pw"\ndatabases = ["shop", "shop_new"]\n`,
  )
  const client = await postgres().connect(0, names['shop']?.[0])
  await client.query(
    'CREATE TABLE acct (tenant bigint, id bigint, v text, PRIMARY KEY (tenant, id))',
  )
  await client.query(`INSERT INTO acct SELECT i, i, 'v' || i FROM generate_series(1, 500) i`)
  await client.end()
  return { config, users, from: names['shop'] ?? [], to: names['shop_new'] ?? [] }
}

async function open(
  port: string,
  database: string,
  user: string,
  password: string,
): Promise<pg.Client> {
  const client = new pg.Client({ host: '127.0.0.1', port: Number(port), user, password, database })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

/** The same move, asked and changed from the command line while the console's task runs. */
async function changeByCommand(shop: {
  config: string
  users: string
  to: string[]
}): Promise<void> {
  const files = ['--config', shop.config, '--users', shop.users]
  const move = [...files, '--from', 'shop', '--to', 'shop_new']
  const set = await runCli(['reshard', 'set', ...move, 'max-wal-kept', '2GB', '--json'])
  expect(set.code, set.stderr).toBe(0)
  expect(JSON.parse(set.stdout)).toMatchObject({ name: 'max_wal_kept', value: '2GB' })
  const kept = await postgres().connect(0, shop.to[0])
  const setting = `SELECT value FROM pgshard.reshard_setting WHERE name = 'max_wal_kept'`
  expect((await kept.query(setting)).rows).toEqual([{ value: '2GB' }])
  await kept.end()
  const wrong = await runCli(['reshard', 'set', ...move, 'max_wal_kept', 'much'])
  expect(wrong.code).not.toBe(0)
  expect(wrong.stderr).toContain('max_wal_kept')
  const page = join(await mkdtemp(join(inject('runDirectory'), 'pgshard-status-')), 'move.html')
  const status = await runCli(['reshard', 'status', ...move, '--html', page, '--json'])
  expect(status.code, status.stderr).toBe(0)
  expect(JSON.parse(status.stdout)).toMatchObject({ state: 'following' })
  const html = await readFile(page, 'utf8')
  expect(html).toContain('<h1>Move of shop to shop_new</h1>')
  expect(html).toContain('<th scope="row">public.acct</th>')
  expect(html).toContain('There was no cutover yet.')
}

test.each([
  ['one process', '1'],
  ['two workers', '2'],
])(
  'D8, D218: COPY_DATA, STOP_TASK, REPLICATE and CUTOVER on the console move a database: %s',
  async (_, workers) => {
    const shop = await makeShop()
    const files = ['--config', shop.config, '--users', shop.users]
    const serve = startCli(['serve', ...files, '--workers', workers])
    const [, port] = await serve.waitForOutput(/listening on 127\.0\.0\.1:(\d+)/)
    const console = await open(String(port), 'admin', 'admin', 'adm')
    const ask = async (sql: string) => (await console.query(sql)).rows as Record<string, string>[]
    const state = async () => (await ask('SHOW TASKS'))[0]?.['status']
    try {
      expect(await ask('SHOW TASKS')).toEqual([])
      await expect(ask('RESHARD shop shop_new mypub')).rejects.toMatchObject({ code: '0A000' })
      await expect(ask('RESHARD shop nowhere')).rejects.toMatchObject({ code: '3D000' })
      await expect(ask('STOP_TASK nothing')).rejects.toMatchObject({ code: '42704' })
      const [begun] = await ask('COPY_DATA shop shop_new')
      const id = begun?.['task_id']
      expect(id).toMatch(/^[0-9a-f]{8}$/)
      await waitFor(async () => (await state()) === 'following', { deadlineMs: 60_000 })
      expect((await ask('SHOW TASKS'))[0]).toMatchObject({
        id,
        scope: 'root',
        inner_status: 'follow',
        source: 'shop',
        target: 'shop_new',
        error: null,
      })
      expect((await ask('SHOW TABLE_COPIES'))[0]).toMatchObject({
        schema: 'public',
        table: 'acct',
        status: 'copied',
        rows: '500',
        rows_human: '500',
      })
      if (workers === '2') await changeByCommand(shop)
      await ask(`SET reshard.max_wal_kept TO '1GB'`)
      await expect(ask(`SET reshard.max_wal_kept TO 'much'`)).rejects.toMatchObject({
        code: '22023',
      })
      const slots = await ask('SHOW REPLICATION_SLOTS')
      expect(slots).toHaveLength(1)
      expect(slots[0]).toMatchObject({
        database_name: shop.from[0],
        name: `pgshard_${id}_0`,
        task: id,
      })
      expect(await ask(`STOP_TASK ${id}`)).toEqual([{ stop_task: id }])
      const through = await open(String(port), 'shop', postgres().user, 'pw')
      await through.query(`INSERT INTO acct VALUES (7, 1000, 'while it rests')`)
      expect(await ask('REPLICATE shop shop_new')).toEqual([{ task_id: id }])
      await waitFor(async () => (await state()) === 'following', { deadlineMs: 60_000 })
      expect(await ask('CUTOVER')).toEqual([{ cutover: id }])
      await waitFor(async () => (await state()) === 'cut_over', { deadlineMs: 60_000 })
      const { rows } = await through.query('SELECT count(*)::int AS n FROM acct')
      expect(rows).toEqual([{ n: 501 }])
      await through.query(`INSERT INTO acct VALUES (8, 1001, 'after')`)
      expect(
        await postgres()
          .connect(0, shop.from[0])
          .then((old) => old.query('SELECT 1 FROM acct WHERE id = 1001'))
          .then((r) => r.rows),
      ).toEqual([])
      await through.end()
    } finally {
      await console.end()
      await serve.stop()
    }
  },
  240_000,
)

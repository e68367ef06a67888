/** `copy-shard` as users start it, into four servers; counts, placement, what a failure leaves, memory. */

import { once } from 'node:events'
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeKeyPlacer } from '../../src/sharding/key-placer.js'
import { runCli, startCli } from '../support/run-cli.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'

const SHARDS = 4
const ROWS = 1_000_000
const MAX_RSS_KB = 300 * 1024

/** Rows of the first half are taken in bulk; quotes keep the others from it. */
const csvRow = (id: number): string =>
  `${id},name ${id},${id < ROWS / 2 ? id * 7 : `"text, ${id * 7}"`}\n`

describe('copy-shard', () => {
  const postgres = usePostgres({ count: SHARDS })
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-copy-'))
  const path = (name: string) => join(directory, name)
  const everywhere = (sql: string) =>
    Promise.all(Array.from({ length: SHARDS }, (_, shard) => postgres().query(sql, [], shard)))
  const counts = async (table = 't') =>
    (await everywhere(`select count(*)::int as n from ${table}`)).map(
      (rows) => rows[0]!['n'] as number,
    )
  const targets = () =>
    Array.from({ length: SHARDS }, (_, shard) => ['--target', postgres().url(shard)]).flat()
  const load = (file: string, ...flags: string[]) => [
    ...['copy-shard', file, '--table', 't', '--sharding-key', 'id', '--format', 'csv', '--quiet'],
    ...targets(),
    ...flags,
  ]
  const placer = makeKeyPlacer({
    column: 'id',
    keyType: 'bigint',
    placement: { kind: 'hash', hasher: 'postgres', buckets: SHARDS, bucketMap: [0, 1, 2, 3] },
  })

  function writeConfig(): string {
    const databases = Array.from({ length: SHARDS }, (_, shard) => {
      const { hostname, port, pathname, username } = new URL(postgres().url(shard))
      return `[[databases]]\nname = "app"\nhost = "${hostname}"\nport = ${port}\ndatabase_name = "${pathname.slice(1)}"\nuser = "${username}"\nshard = ${shard}\n`
    })
    const tables =
      '[[sharded_tables]]\ndatabase = "app"\nname = "t"\ncolumn = "id"\ndata_type = "bigint"\n[[omnisharded_tables]]\ndatabase = "app"\ntables = ["r"]\n'
    writeFileSync(path('pgdog.toml'), `${databases.join('')}${tables}`)
    writeFileSync(path('users.toml'), '[[users]]\nname = "app"\ndatabase = "app"\npassword = "x"\n')
    return path('pgdog.toml')
  }

  beforeAll(async () => {
    await everywhere(
      'create table t (id bigint, a text, b text); create table r (id bigint, a text)',
    )
    writeFileSync(
      path('small.csv'),
      Array.from({ length: 2000 }, (_, id) => `${id},"n ""${id}""\n",\n`).join(''),
    )
  })
  beforeEach(() => everywhere('truncate t, r'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it('D136: loads a million rows, each on its shard, in little memory', async () => {
    const out = createWriteStream(path('big.csv'))
    out.write('id,a,b\n')
    for (let from = 0; from < ROWS; from += 10_000) {
      let text = ''
      for (let id = from; id < from + 10_000; id++) text += csvRow(id)
      if (!out.write(text)) await once(out, 'drain')
    }
    out.end()
    await once(out, 'finish')
    const hook =
      "process.on('exit',()=>process.stderr.write('rss='+process.resourceUsage().maxRSS+'\\n'))"
    const { code, stdout, stderr } = await runCli(
      load(path('big.csv'), '--header', '--verify', '--json'),
      {
        env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` },
        timeoutMs: 120_000,
      },
    )
    expect(code, stderr).toBe(0)
    const report = JSON.parse(stdout) as {
      read: number
      written: number
      rejected: number
      shards: { rows: number }[]
    }
    expect(report).toMatchObject({ read: ROWS, written: ROWS, rejected: 0 })
    expect(report.shards.map(({ rows }) => rows)).toEqual(await counts())
    const sums = await everywhere('select sum(id)::text as s, min(length(b)) as shortest from t')
    const total = sums.reduce((sum, rows) => sum + BigInt(rows[0]!['s'] as string), 0n)
    expect(total).toBe((BigInt(ROWS) * BigInt(ROWS - 1)) / 2n)
    for (let shard = 0; shard < SHARDS; shard++) {
      const rows = await postgres().query(
        'select id::text from t order by random() limit 500',
        [],
        shard,
      )
      for (const { id } of rows) expect(placer.ofString(id as string)).toBe(shard)
    }
    const rss = Number(/rss=(\d+)/.exec(stderr)?.[1])
    expect(rss).toBeGreaterThan(0)
    expect(rss).toBeLessThan(MAX_RSS_KB)
  })

  it('reads standard input, gzip and a configuration; a dry run writes nothing', async () => {
    const config = writeConfig()
    const table = ['--config', config, '--database', 'app', '--table']
    const packed = gzipSync(Array.from({ length: 1000 }, (_, id) => `${id}\t\\N\n`).join(''))
    const text = ['copy-shard', '-', ...table, 'r', '--format', 'text', '--quiet']
    const dry = await runCli([...text, '--dry-run', '--json'], { input: packed })
    expect(JSON.parse(dry.stdout)).toMatchObject({ read: 1000, written: 0, dry_run: true })
    expect(await counts('r')).toEqual([0, 0, 0, 0])
    const { code, stdout, stderr } = await runCli(text, { input: packed })
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('read 1,000 = written 1,000 (on each of 4 shards) + rejected 0')
    expect(await counts('r')).toEqual([1000, 1000, 1000, 1000])
    const sharded = await runCli([
      'copy-shard',
      path('small.csv'),
      ...table,
      't',
      '--json',
      '--quiet',
    ])
    expect(JSON.parse(sharded.stdout)).toMatchObject({ read: 2000, written: 2000 })
    const rows = await counts()
    expect(rows.reduce((sum, n) => sum + n, 0)).toBe(2000)
    expect(Math.min(...rows)).toBeGreaterThan(300)
  })

  it('loads several files side by side', async () => {
    writeFileSync(path('part-1.csv'), '1,a,b\n2,a,b\n')
    writeFileSync(path('part-2.csv.gz'), gzipSync('3,a,b'))
    const { code, stdout, stderr } = await runCli(load(path('part-*'), '--jobs', '2', '--json'))
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ read: 3, written: 3 })
  })

  it.each([
    [
      'a row that a server refuses',
      '1,a,b\n2,a,b\n3,"x\ny",b\n4,a,b,c\n5,a,b\n',
      'extra data after last expected column',
      'line 5 of file',
      '22P04',
    ],
    [
      'a key that is no number',
      '1,a,b\nx,a,b\n',
      'invalid input syntax for type bigint: "x"',
      'line 2, column id: "x"',
      '22P02',
    ],
    ['an open quote', '1,a,b\n2,"a,b\n', 'unterminated CSV quoted field', 'line 3', '22P04'],
  ])('leaves nothing behind %s', async (_, data, message, place, sqlstate) => {
    writeFileSync(path('bad.csv'), data)
    const { code, stdout, stderr } = await runCli(load(path('bad.csv'), '--json'))
    expect(code).toBe(5)
    expect(stderr).toContain(message)
    expect(stderr).toContain(place)
    expect(JSON.parse(stdout)).toMatchObject({ error: { sqlstate } })
    expect(await counts()).toEqual([0, 0, 0, 0])
  })

  it('finds a deferred constraint before the first commit', async () => {
    await postgres().query(
      'alter table t add constraint one unique (id) deferrable initially deferred',
      [],
      3,
    )
    try {
      writeFileSync(path('twice.csv'), `${await firstKeyOf(3)},a,b\n`.repeat(2))
      const { code, stderr } = await runCli(load(path('twice.csv')))
      expect(code).toBe(5)
      expect(stderr).toContain('duplicate key value violates unique constraint')
      expect(await counts()).toEqual([0, 0, 0, 0])
    } finally {
      await postgres().query('alter table t drop constraint one', [], 3)
    }
  })

  it('keeps what shards have committed when one cannot, and goes on with --resume', async () => {
    // The second trigger is deferred again while the first runs, so that only COMMIT fires it.
    await postgres().query(
      `create table late (id int);
       create function refuse() returns trigger language plpgsql as $$ begin raise exception 'too late'; end $$;
       create constraint trigger refuse after insert on late deferrable initially deferred for each row execute function refuse();
       create function delay() returns trigger language plpgsql as $$ begin set constraints refuse deferred; insert into late values (1); return null; end $$;
       create constraint trigger delay after insert on t deferrable initially deferred for each row execute function delay()`,
      [],
      2,
    )
    try {
      const { code, stderr } = await runCli(load(path('small.csv')))
      expect(code, stderr).toBe(6)
      expect(stderr).toContain('too late')
      expect(stderr).toContain('--resume')
      const rows = await counts()
      expect(rows.map((n) => n > 0)).toEqual([true, true, false, true])
      const again = await runCli(load(path('small.csv')))
      expect(again.code).toBe(5)
      expect(again.stderr).toContain('has not ended')
    } finally {
      await postgres().query(
        'drop function delay cascade; drop table late; drop function refuse',
        [],
        2,
      )
    }
    const { code, stdout, stderr } = await runCli(load(path('small.csv'), '--resume', '--json'))
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ read: 2000, written: 2000 })
    const rows = await counts()
    expect(rows.reduce((sum, n) => sum + n, 0)).toBe(2000)
  })

  const firstKeyOf = async (shard: number) => {
    for (let id = 0; ; id++) if (placer.ofString(String(id)) === shard) return id
  }

  it('rolls back on Ctrl-C', async () => {
    const program = startCli(load(path('big.csv'), '--header', '--max-rate', '2MB'))
    await waitFor(
      async () => {
        const rows = await postgres().query(
          'select 1 from pg_stat_progress_copy where tuples_processed > 1000 and datname = current_database()',
        )
        return rows.length > 0 || undefined
      },
      { deadlineMs: 20_000, what: 'rows of the COPY' },
    )
    program.signal('SIGINT')
    const { code } = await program.ended
    expect(code).toBe(130)
    expect(await counts()).toEqual([0, 0, 0, 0])
  })

  it('fails as a whole when one server ends the connection', async () => {
    const program = startCli(load(path('big.csv'), '--header', '--max-rate', '2MB'))
    await waitFor(
      async () => {
        const rows = await postgres().query(
          'select pg_terminate_backend(pid) from pg_stat_progress_copy where tuples_processed > 1000 and datname = current_database()',
          [],
          1,
        )
        return rows.length > 0 || undefined
      },
      { deadlineMs: 20_000, what: 'a COPY to end' },
    )
    const { code, stderr } = await program.ended
    expect(code).not.toBe(0)
    expect(stderr).toMatch(/terminating connection|terminated unexpectedly/)
    expect(await counts()).toEqual([0, 0, 0, 0])
  })

  it.each([
    [['--jobs', '0'], 2],
    [['--bogus'], 2],
    [['--max-rate', 'fast'], 2],
    [['--delimiter', 'ab'], 2],
    [['--columns', 'id,nope'], 3],
  ])('refuses %j', async (flags, expected) => {
    const { code, stderr } = await runCli(load(path('small.csv'), ...flags))
    expect(code, stderr).toBe(expected)
    expect(await counts()).toEqual([0, 0, 0, 0])
  })
})

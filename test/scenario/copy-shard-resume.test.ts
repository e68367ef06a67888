/** `copy-shard` killed, its wire cut, a shard restarted: then `--resume`, exact counts, no row twice. And what is rejected. */
import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeRandom } from '../support/random.js'
import { runCli, startCli } from '../support/run-cli.js'
import { startSpoiler } from '../support/spoiler.js'
import { bySize } from '../support/test-size.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'

const SHARDS = 4
const ROWS = bySize(200_000, 2_000_000)
const KILLS = bySize(3, 20)

describe('copy-shard --resume', () => {
  const postgres = usePostgres({ count: SHARDS, own: true })
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-resume-'))
  const path = (name: string) => join(directory, name)
  const everywhere = (sql: string) =>
    Promise.all(Array.from({ length: SHARDS }, (_, shard) => postgres().query(sql, [], shard)))
  const urls = () => Array.from({ length: SHARDS }, (_, shard) => postgres().url(shard))
  const load = (file: string, to: string[], ...flags: string[]) => [
    ...['copy-shard', file, '--table', 't', '--sharding-key', 'id', '--format', 'csv', '--quiet'],
    ...to.flatMap((url) => ['--target', url]),
    ...flags,
  ]
  const total = async () => {
    const all = await everywhere('select count(*)::int as n, count(distinct id)::int as d from t')
    return {
      rows: all.reduce((sum, rows) => sum + (rows[0]!['n'] as number), 0),
      keys: all.reduce((sum, rows) => sum + (rows[0]!['d'] as number), 0),
    }
  }
  /** Moments to strike: the same in every run. */
  const random = makeRandom(5)
  /** Rows that checkpoints speak of. */
  const committed = async () => {
    const sql = 'select coalesce(sum(rows_written), 0)::int as n from pgshard.copy_checkpoint'
    const all = await everywhere(sql).catch(() => [])
    return all.reduce((sum, rows) => sum + (rows[0]!['n'] as number), 0)
  }
  const hasCheckpoints = async () =>
    (await everywhere(`select to_regclass('pgshard.copy_checkpoint') is not null as t`)).some(
      (rows) => rows[0]!['t'],
    )

  beforeAll(async () => {
    const out = createWriteStream(path('big.csv'))
    for (let from = 0; from < ROWS; from += 10_000) {
      let text = ''
      for (let id = from; id < from + 10_000; id++) text += `${id},"line one\nof ${id}",${id * 7}\n`
      out.write(text)
    }
    out.end()
    await finished(out)
    await everywhere('create table t (id bigint, a text, n bigint)')
  }, 60_000)
  beforeEach(() => everywhere('truncate t'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  /** Runs until rows are committed and a random while longer; then `strike`. */
  async function strikeAmid(args: string[], strike: (pid: number) => Promise<void> | void) {
    const program = startCli(args)
    let isOver = false
    void program.ended.then(() => {
      isOver = true
    })
    const goal = random() * 0.6 * ROWS
    await waitFor(async () => isOver || (await committed()) > goal || undefined, {
      deadlineMs: 60_000,
      what: 'rows to be committed',
    })
    await strike(program.pid)
    return await program.ended
  }

  /** Resumes until it is done: a strike may have come after the end, or before the beginning. */
  async function complete(args: string[]): Promise<void> {
    const { code, stdout, stderr } = await runCli([...args, '--json'], { timeoutMs: 120_000 })
    expect(code, stderr + stdout).toBe(0)
    expect(await total()).toEqual({ rows: ROWS, keys: ROWS })
    expect(await hasCheckpoints()).toBe(false)
  }

  /** Processes of the third server that load, by the system's own list. */
  const backends = (): { pid: number }[] => {
    const postmaster = postgres().servers[2]!.pid
    const found = spawnSync('ps', ['-o', 'pid=,args=', '--ppid', String(postmaster)], {
      encoding: 'utf8',
    })
    return found.stdout
      .split('\n')
      .filter((line) => line.includes('[local]') || /127\.0\.0\.1/.test(line))
      .map((line) => ({ pid: Number.parseInt(line, 10) }))
  }

  const small = ['--batch-size', '300kB']

  it(
    'loses and doubles nothing when it is killed',
    async () => {
      let amid = 0
      for (let kill = 0; kill < KILLS; kill++) {
        await everywhere('truncate t')
        const jobs = kill % 2 === 0 ? [] : ['--jobs', '3']
        const args = load(path('big.csv'), urls(), ...small, ...jobs)
        await strikeAmid(args, (pid) => void process.kill(pid, 'SIGKILL'))
        if (!(await hasCheckpoints())) continue // it had ended
        amid++
        await complete([...args, '--resume'])
      }
      expect(amid).toBeGreaterThan(KILLS / 2)
    },
    KILLS * 120_000,
  )

  it('goes on when a shard was restarted', async () => {
    const args = load(path('big.csv'), urls(), ...small)
    const { code, stderr } = await strikeAmid(args, () => {
      // The postmaster starts all its processes anew after a crash of one.
      const [{ pid } = { pid: 0 }] = backends()
      process.kill(pid, 'SIGKILL')
    })
    expect(code, stderr).toBe(6)
    expect(stderr).toContain('--resume')
    await waitFor(
      () =>
        postgres()
          .query('select 1', [], 2)
          .catch(() => undefined),
      {
        deadlineMs: 60_000,
        what: 'the shard to be back',
      },
    )
    await complete([...args, '--resume'])
  }, 120_000)

  it('goes on when the wire was cut', async () => {
    const target = new URL(urls()[1]!)
    const spoiler = await startSpoiler({ host: target.hostname, port: Number(target.port) })
    try {
      target.port = String(spoiler.port)
      const to = urls().map((url, shard) => (shard === 1 ? target.href : url))
      const args = load(path('big.csv'), to, ...small)
      const { code, stderr } = await strikeAmid(args, () => spoiler.strike('reset'))
      expect(code, stderr).toBe(6)
      await complete([...args, '--resume'])
    } finally {
      await spoiler.close()
    }
  }, 120_000)

  it('goes on with the same standard input, and refuses another', async () => {
    const data = readFileSync(path('big.csv'))
    const args = load('-', urls(), ...small)
    const program = startCli(args)
    program.child.stdin!.write(data.subarray(0, Math.floor(data.length * 0.7)))
    await waitFor(async () => (await committed()) > ROWS / 5 || undefined, {
      deadlineMs: 60_000,
      what: 'rows to be committed',
    })
    program.signal('SIGKILL')
    await program.ended
    const before = await total()
    const refuse = async (input: Buffer, reason: string) => {
      const { code, stderr } = await runCli([...args, '--resume'], { input, timeoutMs: 60_000 })
      expect(code, stderr).toBeGreaterThan(4)
      expect(stderr).toContain(reason)
      expect(await total()).toEqual(before)
    }
    // The last is a row of the second megabyte, long before what was committed last.
    const changed = (at: number) =>
      Buffer.concat([data.subarray(0, at), Buffer.from('9'), data.subarray(at + 1)])
    await refuse(changed(0), 'first megabyte')
    const digit = data.indexOf('\n', (1 << 20) + 100) - 1
    await refuse(changed(digit), 'has other bytes than before')
    await refuse(data.subarray(0, (1 << 20) + 500), 'has other bytes than before')
    const { code, stderr } = await runCli([...args, '--resume'], {
      input: data,
      timeoutMs: 120_000,
    })
    expect(code, stderr).toBe(0)
    expect(await total()).toEqual({ rows: ROWS, keys: ROWS })
  }, 120_000)

  it('refuses to resume what is not there, and another map', async () => {
    writeFileSync(path('some.csv'), '1,a,1\n2,b,2\n')
    const args = load(path('some.csv'), urls())
    const none = await runCli([...args, '--resume'])
    expect(none.code).toBe(5)
    expect(none.stderr).toContain('there is no load of this input')
    expect(await total()).toEqual({ rows: 0, keys: 0 })
    const bad = load(path('big.csv'), urls(), ...small)
    await strikeAmid(bad, (pid) => void process.kill(pid, 'SIGKILL'))
    writeFileSync(path('map.json'), '[3,2,1,0]')
    const other = await runCli([...bad, '--resume', '--map', path('map.json')])
    expect(other.code, other.stderr).toBe(5)
    expect(other.stderr).toContain('rows would go to other shards')
    const dialect = await runCli([...bad, '--resume', '--null', 'x'])
    expect(dialect.stderr).toContain('options')
    await complete([...bad, '--resume'])
  }, 120_000)

  describe('rejects', () => {
    const bads = ['x17,a,1', '18,"two\nlines",bad', '19', '20,a,1,extra', '21,,', '21,,']
    beforeAll(() => everywhere('create table r (id bigint unique, a text, n int)'))
    const rejecting = (file: string, ...flags: string[]) =>
      load(
        file,
        urls(),
        '--on-error',
        'reject',
        '--reject-file',
        path('rejects.csv'),
        ...flags,
      ).map((word) => (word === 't' ? 'r' : word))
    const reasons = () =>
      readFileSync(path('rejects.csv.reasons'), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { line: number; sqlstate: string; data: string })

    it('tells rows, lines and reasons apart, and loads them after repair', async () => {
      const good = Array.from({ length: 3000 }, (_, id) => `${id + 1000},"a\n${id}",${id}\n`)
      const rows = [...good]
      for (const [index, bad] of bads.entries()) rows.splice(index * 400 + 7, 0, `${bad}\n`)
      writeFileSync(path('mixed.csv'), `id,a,n\n${rows.join('')}`)
      const { code, stdout, stderr } = await runCli(
        rejecting(path('mixed.csv'), '--header', '--json'),
      )
      expect(code, stderr).toBe(6)
      expect(JSON.parse(stdout)).toMatchObject({ read: 3006, written: 3001, rejected: 5 })
      const found = reasons()
      expect(found.map(({ data }) => data)).toEqual(
        ['x17,a,1', '18,"two\nlines",bad', '19', '20,a,1,extra', '21,,'].map((row) => `${row}\n`),
      )
      expect(found.map(({ sqlstate }) => sqlstate)).toEqual([
        '22P02',
        '22P02',
        '22P04',
        '22P04',
        '23505',
      ])
      const lines = `id,a,n\n${rows.join('')}`.split('\n')
      for (const { data, line } of found)
        expect(lines[line - 1]).toBe(data.trimEnd().split('\n').at(-1))
      const repaired = readFileSync(path('rejects.csv'), 'utf8')
        .replace('x17', '17')
        .replace('bad', '1')
        .replace('\n19\n', '\n19,,\n')
        .replace(',extra', '')
        .replace('\n21,,', '\n22,,')
      writeFileSync(path('repaired.csv'), repaired)
      const again = await runCli(
        load(path('repaired.csv'), urls(), '--header').map((word) => (word === 't' ? 'r' : word)),
      )
      expect(again.code, again.stderr).toBe(0)
      const all = await everywhere('select count(*)::int as n from r')
      expect(all.reduce((sum, one) => sum + (one[0]!['n'] as number), 0)).toBe(3006)
    })

    it('needs a file to reject to', async () => {
      const { code } = await runCli(load(path('big.csv'), urls(), '--on-error', 'reject'))
      expect(code).toBe(2)
    })
  })

  describe('--single-transaction', () => {
    it('needs setup, and then loads all or nothing', async () => {
      const args = load(path('big.csv'), urls(), '--single-transaction')
      const refused = await runCli(args)
      expect(refused.stderr).toContain('pgshard setup')
      expect(refused.code).not.toBe(0)
      expect(await total()).toEqual({ rows: 0, keys: 0 })
      await setup()
      // A fault that only the commit of the last shard finds.
      await postgres().query(
        `create table late (id int);
         create function refuse() returns trigger language plpgsql as $$ begin raise exception 'too late'; end $$;
         create constraint trigger refuse after insert on late deferrable initially deferred for each row execute function refuse();
         create function delay() returns trigger language plpgsql as $$ begin set constraints refuse deferred; insert into late values (1); return null; end $$;
         create constraint trigger delay after insert on t deferrable initially deferred for each row execute function delay()`,
        [],
        3,
      )
      const failed = await runCli(args)
      expect(failed.code, failed.stderr).toBe(5)
      expect(failed.stderr).toContain('too late')
      expect(await total()).toEqual({ rows: 0, keys: 0 })
      await postgres().query(
        'drop function delay cascade; drop table late; drop function refuse',
        [],
        3,
      )
      const { code, stdout, stderr } = await runCli([...args, '--json'], { timeoutMs: 120_000 })
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ read: ROWS, written: ROWS, rejected: 0 })
      expect(await total()).toEqual({ rows: ROWS, keys: ROWS })
      const left = await everywhere('select count(*)::int as n from pg_prepared_xacts')
      expect(left.map((rows) => rows[0]!['n'])).toEqual([0, 0, 0, 0])
    }, 120_000)

    async function setup(): Promise<void> {
      const databases = urls().map((url, shard) => {
        const { hostname, port, pathname, username } = new URL(url)
        return `[[databases]]\nname = "app"\nhost = "${hostname}"\nport = ${port}\ndatabase_name = "${pathname.slice(1)}"\nuser = "${username}"\nshard = ${shard}\n`
      })
      writeFileSync(path('pgdog.toml'), databases.join(''))
      writeFileSync(
        path('users.toml'),
        '[[users]]\nname = "app"\ndatabase = "app"\npassword = "x"\n',
      )
      const { code, stderr } = await runCli(['setup', '--config', path('pgdog.toml')])
      expect(code, stderr).toBe(0)
    }
  })
})

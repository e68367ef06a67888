/** What may go wrong around a load: other runs of it, locks, a full disk, what a killed one has left prepared. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { makeCopyOptions } from '../../src/copy/copy-options.js'
import { Checkpoints } from '../../src/load/batches/checkpoints.js'
import type { CopyJob } from '../../src/load/batches/copy-job.js'
import { type BatchRequest, loadBatches } from '../../src/load/batches/load-batches.js'
import type { CopyInput } from '../../src/load/input/open-input.js'
import { placeByColumn } from '../../src/load/request/load-options.js'
import { ShardClients } from '../../src/load/shards/shard-clients.js'
import { LoadCommit } from '../../src/load/whole/commit-two-phase.js'
import { loadCopy } from '../../src/load/whole/load-copy.js'
import { runCli } from '../support/run-cli.js'
import { writeServeConfig } from '../support/serve.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'

const SHARDS = 2

describe('D140: a load', () => {
  const postgres = usePostgres()
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-hazards-'))
  const databases: string[] = []
  const shards: pg.Client[] = []
  const urls = () => databases.map((one) => postgres().url(0, one))
  const everywhere = async (sql: string) =>
    (await Promise.all(shards.map((shard) => shard.query(sql)))).map(({ rows }) => rows)
  const counts = async () =>
    (await everywhere('select count(*)::int as n from t')).map(([row]) => row.n as number)

  /** Whether a session of the shard waits for a lock; asked on the other, outside of any transaction. */
  const isWaiting = async (shard: number, forMs = 0) => {
    const sql = `select 1 from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'
      and clock_timestamp() - query_start > $2 * interval '1 ms'`
    const { rows } = await shards[1 - shard]!.query(sql, [databases[shard], forMs])
    return rows.length > 0
  }

  beforeAll(async () => {
    for (let shard = 0; shard < SHARDS; shard++) {
      databases.push(await postgres().createDatabase())
      shards.push(await postgres().connect(0, databases[shard]))
    }
  })
  beforeEach(async () => {
    await everywhere('rollback')
    await everywhere(
      'drop schema if exists pgshard cascade; drop table if exists t; create table t (id bigint, a text)',
    )
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  const requestOf = (input: CopyInput, more: Partial<BatchRequest> = {}): BatchRequest => ({
    inputs: [input],
    compression: 'none',
    urls: urls(),
    table: 't',
    options: makeCopyOptions({ format: 'csv' }),
    jobs: 1,
    isDryRun: false,
    verifies: false,
    placementOf: (table) => placeByColumn({ column: 'id' }, table, SHARDS),
    isResume: false,
    batchBytes: 1e6,
    usesEveryShard: true,
    ...more,
  })
  const watch = {
    clock: systemClock,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    note: () => undefined,
  }
  const rowsOf = (from: number, to: number) =>
    Buffer.from(
      Array.from({ length: to - from }, (_, n) => `${from + n},${'x'.repeat(90)}\n`).join(''),
    )
  const piped = (source: PassThrough): CopyInput => ({ name: 'pipe', open: () => source })

  it('that waits for another holds nothing that the other may want', async () => {
    const source = new PassThrough()
    const first = rowsOf(0, 15_000)
    source.write(first)
    const load = loadBatches(requestOf(piped(source), { batchBytes: first.length }), watch)
    load.catch(() => undefined)
    const standing = 'select last_row::int as n from pgshard.copy_checkpoint'
    await waitFor(async () => (await everywhere(standing)).every(([row]) => (row?.n as number) > 0))
    const hold = 'select 1 from pgshard.copy_checkpoint for update'
    await shards[0]!.query(`begin; ${hold}`)
    source.write(rowsOf(15_000, 30_000))
    await waitFor(() => isWaiting(0))
    await shards[1]!.query(`begin; ${hold} nowait; rollback`)
    await shards[0]!.query('rollback')
    source.end()
    const { written } = await load
    expect(written).toBe(30_000)
    expect((await counts()).reduce((a, b) => a + b)).toBe(30_000)
  }, 60_000)

  it('that has loaded nothing leaves the checkpoints of another run alone', async () => {
    const job: CopyJob = {
      id: 'one-job',
      table: 't',
      options: '{}',
      mapHash: 'map',
      parts: [
        {
          part: 0,
          input: 0,
          identity: { name: 'f', head: 'h' },
          start: 0,
          end: -1,
          linesBefore: 0,
        },
      ],
    }
    const clients = new ShardClients()
    try {
      const one = new Checkpoints(clients, urls(), job)
      const other = new Checkpoints(clients, urls(), job)
      await Promise.all([one.start(false), other.start(false)])
      const move = one.moveSql(0, { from: 0, to: 5, rows: 5 }, undefined)
      expect((await shards[0]!.query(move)).rowCount).toBe(1)
      await other.forget()
      const kept = 'select last_row::int as n from pgshard.copy_checkpoint'
      expect(await everywhere(kept)).toEqual([[{ n: 5 }], [{ n: 0 }]])
      // Nor can what has not moved them write: its checkpoint stands elsewhere.
      expect((await shards[0]!.query(move)).rowCount).toBe(0)
      await one.finish()
    } finally {
      await clients.close()
    }
  })

  it('waits for locks longer than the settings of the database, but not for ever', async () => {
    await everywhere(`do $$ begin
      execute format('alter database %I set lock_timeout = 200', current_database());
      execute format('alter database %I set statement_timeout = 200', current_database());
    end $$;
    alter table t add seen text;
    create function see() returns trigger language plpgsql as $$ begin
      new.seen = current_setting('lock_timeout') || ' ' || current_setting('statement_timeout');
      return new;
    end $$;
    create trigger see before insert on t for each row execute function see()`)
    try {
      await shards[1]!.query('begin; lock table t')
      writeFileSync(join(directory, 'in.csv'), rowsOf(0, 100))
      const file = join(directory, 'in.csv')
      const input = {
        name: file,
        sizeBytes: rowsOf(0, 100).length,
        file: { path: file },
        open: () => new PassThrough(),
      }
      let hasEnded = false
      const load = loadBatches(requestOf(input, { columns: ['id', 'a'] }), watch).finally(() => {
        hasEnded = true
      })
      load.catch(() => undefined)
      await waitFor(async () => hasEnded || (await isWaiting(1, 600)))
      expect(hasEnded).toBe(false)
      await shards[1]!.query('rollback')
      expect(await load).toMatchObject({ written: 100 })
      const seen = (await everywhere('select distinct seen from t')).flat()
      expect(seen).toEqual([{ seen: '5min 0' }, { seen: '5min 0' }])
    } finally {
      await shards[1]!.query('rollback')
      await everywhere(`drop function see() cascade; do $$ begin
        execute format('alter database %I reset all', current_database()); end $$`)
    }
  }, 60_000)

  it('commits no batch whose rejects do not fit on the disk', async () => {
    const good = rowsOf(0, 20)
    const file = join(directory, 'bad.csv')
    const data = Buffer.concat([Buffer.from('id,a\n'), good, Buffer.from('x,bad\n')])
    writeFileSync(file, data)
    const input = {
      name: file,
      sizeBytes: data.length,
      file: { path: file },
      open: () => new PassThrough(),
    }
    // Whatever is written there finds the disk full.
    for (const [full, header] of [
      ['.reasons', 'none'],
      ['', 'none'],
      ['', 'true'],
    ] as const) {
      const rejectPath = join(directory, `rejects${full}-${header}`)
      rmSync(`${rejectPath}${full}`, { force: true })
      symlinkSync('/dev/full', `${rejectPath}${full}`)
      const options = makeCopyOptions({
        format: 'csv',
        header: header === 'true' ? 'true' : 'false',
      })
      const request = requestOf(input, { options, rejectPath })
      await expect(loadBatches(request, watch)).rejects.toMatchObject({
        code: 'COPY_REJECT_FILE',
        message: expect.stringContaining('ENOSPC'),
      })
      expect(await counts()).toEqual([0, 0])
      const left = await everywhere("select to_regclass('pgshard.copy_checkpoint') as at")
      expect(left).toEqual([[{ at: null }], [{ at: null }]])
    }
  })

  it('says so when a killed one has just been committed', async () => {
    const { host, port } = postgres().servers[0]!
    const { configPath, usersPath } = writeServeConfig({
      shards: databases.map((database) => ({ host, port, database })),
      tables: '[[sharded_tables]]\ndatabase = "app"\nname = "t"\ncolumn = "id"',
    })
    const made = await runCli(['setup', '-c', configPath, '-u', usersPath])
    expect(made.code, made.stderr).toBe(0)
    const killed = await LoadCommit.open(urls())
    const clients = await Promise.all(databases.map((one) => postgres().connect(0, one)))
    for (const client of clients)
      await client.query("begin; insert into t values (1, 'of the killed one')")
    await new Promise<void>((resolve, reject) => {
      const step = (name: string) =>
        name === 'decided' ? new Promise<void>(() => resolve()) : undefined
      killed.commit(clients, step).catch(reject)
    })
    await Promise.all(clients.map((client) => client.end()))
    const data = rowsOf(0, 10)
    const again = () => {
      const source = new PassThrough()
      source.end(data)
      return loadCopy({ ...requestOf(piped(source)), isTwoPhase: true }, watch)
    }
    await expect(again()).rejects.toMatchObject({ code: 'COPY_RECOVERED' })
    expect(await counts()).toEqual([1, 1])
    expect(await again()).toMatchObject({ written: 10 })
    expect((await counts()).reduce((a, b) => a + b)).toBe(12)
  }, 60_000)
})

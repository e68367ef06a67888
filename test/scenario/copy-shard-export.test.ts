/** `copy-shard --out`: what was loaded comes out as one file that PostgreSQL and `copy-shard` read again, in order when asked. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../support/run-cli.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 3
const ROWS = 5000

describe('copy-shard --out', () => {
  const postgres = usePostgres({ count: 1 })
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-export-'))
  const path = (name: string) => join(directory, name)
  const databases: string[] = []
  const targets = () => databases.flatMap((database) => ['--target', postgres().url(0, database)])
  const everywhere = async (sql: string) => {
    for (const database of databases) {
      const client = await postgres().connect(0, database)
      await client.query(sql)
      await client.end()
    }
  }
  const lines = Array.from({ length: ROWS }, (_, n) => {
    const id = (n * 7919) % ROWS
    return `${id - 100},k${String(id).padStart(5, '0')},"a ""b""\n${id}"`
  })
  const copy = (...flags: string[]) =>
    runCli(['copy-shard', '--table', 't', '--quiet', ...targets(), ...flags])

  beforeAll(async () => {
    for (let shard = 0; shard < SHARDS; shard++) databases.push(await postgres().createDatabase())
    await everywhere('create table t (id bigint, k text, v text)')
    writeFileSync(path('in.csv'), `id,k,v\n${lines.join('\n')}\n`)
    const { code, stderr } = await copy(path('in.csv'), '--header', '--sharding-key', 'id')
    expect(code, stderr).toBe(0)
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it('has every row once under one header', async () => {
    const { code, stdout, stderr } = await copy('--out', path('out.csv'), '--header', '--json')
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ read: ROWS, written: ROWS, rejected: 0 })
    const text = readFileSync(path('out.csv'), 'utf8')
    expect(text.startsWith('id,k,v\n')).toBe(true)
    expect(
      text
        .slice(7)
        .split(/(?<=\d")\n/)
        .filter(Boolean)
        .sort(),
    ).toEqual([...lines].sort())
    expect(existsSync(path('out.csv.part'))).toBe(false)
  })

  it.each(['id', 'k'])('is in the order of %s', async (column) => {
    const { code, stderr } = await copy(
      '--out',
      path('sorted.csv.gz'),
      '--order-by',
      column,
      '--columns',
      'id,k',
    )
    expect(code, stderr).toBe(0)
    const ids = gunzipSync(readFileSync(path('sorted.csv.gz')))
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => Number(line.split(',')[0]))
    expect(ids).toEqual(Array.from({ length: ROWS }, (_, id) => id - 100))
  })

  it.each([
    ['text', []],
    ['binary', []],
    ['binary', ['--order-by', 'id']],
  ] as const)('is loaded again from %s %j', async (format, flags) => {
    const file = path(`again.${format}`)
    const out = await copy('--out', file, '--format', format, ...flags)
    expect(out.code, out.stderr).toBe(0)
    await everywhere('truncate t')
    const { code, stdout, stderr } = await copy(
      file,
      '--format',
      format,
      '--sharding-key',
      'id',
      '--json',
    )
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ read: ROWS, written: ROWS })
  })

  it('leaves no file behind a failure', async () => {
    const { code, stderr } = await copy('--out', path('no.csv'), '--order-by', 'nope')
    expect(code, stderr).toBe(3)
    expect(existsSync(path('no.csv')) || existsSync(path('no.csv.part'))).toBe(false)
    expect((await copy('--out', path('no.csv'), '--dry-run')).code).toBe(2)
    expect((await copy('--out', path('no.csv'), '--on-error', 'reject')).code).toBe(2)
    expect((await copy(path('in.csv'), '--out', path('no.csv'))).code).toBe(2)
    expect((await copy()).code).toBe(2)
  })
})

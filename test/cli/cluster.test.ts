import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli, runCliJson } from '../support/run-cli.js'

let place: string
let directory: string
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'pgshard-cli-'))
  directory = join(place, 'c')
})
afterAll(async () => {
  if (existsSync(join(directory, 'cluster.json')))
    await runCli(['cluster', 'destroy', '--dir', directory])
  rmSync(place, { recursive: true, force: true })
})

interface Shown {
  servers: { name: string; role: string; port: number; url: string; pid?: number; state?: string }[]
  files: string[]
}

test('start, status, psql, stop, destroy', async () => {
  const at = ['--dir', directory]
  const started = await runCliJson<Shown>([
    'cluster',
    'start',
    '--shards',
    '2',
    '--replicas',
    '1',
    ...at,
  ])
  expect(started.servers.map(({ name }) => name)).toEqual([
    'shard_0',
    'shard_1',
    'shard_0_replica_1',
    'shard_1_replica_1',
  ])
  for (const file of started.files) expect(existsSync(file)).toBe(true)
  const config = readFileSync(join(directory, 'pgdog.toml'), 'utf8')
  for (const { port } of started.servers) expect(config).toContain(`port = ${port}\n`)

  const status = await runCliJson<Shown>(['cluster', 'status', ...at])
  expect(status.servers.map(({ state }) => state)).toEqual(Array(4).fill('running'))

  const script =
    "create table t (a int, b text);\ninsert into t\nvalues (1, 'x;y');\ntable t;\n\\d t\n"
  const shell = await runCli(['cluster', 'psql', '--builtin', '--shard', '1', ...at], {
    input: script,
  })
  expect(shell.code).toBe(0)
  expect(shell.stdout).toBe(
    [
      'CREATE TABLE',
      'INSERT 0 1',
      ' a |  b',
      '---+-----',
      ' 1 | x;y',
      '(1 row)',
      '',
      ' Column |  Type   | Nullable | Default',
      '--------+---------+----------+---------',
      ' a      | integer |          |',
      ' b      | text    |          |',
      '(2 rows)',
      '',
      ' Indexes',
      '---------',
      '(0 rows)',
      '',
      '',
    ].join('\n'),
  )
  const wrong = await runCli(['cluster', 'psql', '--builtin', '-c', 'select nonsense', ...at])
  expect([wrong.code, wrong.stderr]).toEqual([1, 'ERROR:  column "nonsense" does not exist\n'])

  expect(await runCliJson(['cluster', 'stop', ...at])).toEqual({ stopped: 4 })
  expect(await runCliJson(['cluster', 'destroy', ...at])).toEqual({ stopped: 0, destroyed: true })
  expect(existsSync(directory)).toBe(false)
})

test('a password is not printed', async () => {
  const own = join(place, 'secret')
  const { stdout, stderr } = await runCli(['cluster', 'start', '--shards', '1', '--dir', own], {
    env: { PGSHARD_CLUSTER_PASSWORD: 'hunter2' },
  })
  const status = await runCli(['cluster', 'status', '--json', '--dir', own])
  await runCli(['cluster', 'destroy', '--dir', own])
  expect(stdout).toContain('postgres://postgres:***@127.0.0.1')
  expect(stdout + stderr + status.stdout).not.toContain('hunter2')
})

test.each(['stop', 'status', 'psql', 'destroy'])(
  '%s without a cluster says what to do',
  async (command) => {
    const { code, stderr } = await runCli(['cluster', command, '--dir', join(place, 'none')])
    expect(code).toBe(5)
    expect(stderr).toMatch(
      /^pgshard: there is no cluster in ".*none"\nHINT: make one with "pgshard cluster start"/,
    )
  },
)

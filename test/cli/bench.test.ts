/** bench as users start it: exit codes, init by -i, threads, JSON. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../support/free-port.js'
import { runCli, runCliJson } from '../support/run-cli.js'
import { usePostgres } from '../support/use-postgres.js'

const postgres = usePostgres({ count: 2 })
const directory = mkdtempSync(join(tmpdir(), 'pgshard-bench-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function conninfo(more = ''): string {
  const { servers, user, database } = postgres()
  const hosts = servers.map(({ host }) => host).join(',')
  const ports = servers.map(({ port }) => port).join(',')
  return `host=${hosts} port=${ports} user=${user} dbname=${database} ${more}`
}

beforeAll(async () => {
  const init = await runCli(['bench', '-i', '-s', '1', '-q', '--unlogged-tables', conninfo()])
  expect([init.code, init.stderr.match(/done in /g)?.length]).toEqual([0, 2])
})

interface Report {
  processed: number
  exit_code: number
  threads: number
  nodes: { node: string; connections: number; transactions: number }[]
}

test('threads share the clients, and nothing is counted twice', async () => {
  const report = await runCliJson<Report>([
    'bench',
    ...['-j', '2', '-c', '5', '-t', '40', '-S', '-n', '--json'],
    conninfo('load_balance_hosts=random connect_timeout=5'),
  ])
  expect([report.processed, report.threads, report.exit_code]).toEqual([200, 2, 0])
  expect(report.nodes.reduce((sum, node) => sum + node.transactions, 0)).toBe(200)
  expect(report.nodes.reduce((sum, node) => sum + node.connections, 0)).toBe(5)
})

test('text to stdout, the rest to stderr; the JSON file holds the same run', async () => {
  const file = join(directory, 'report.json')
  const run = await runCli(['bench', '-t', '20', '--json-file', file, conninfo()])
  expect(run.code).toBe(0)
  expect(run.stdout).toContain('number of transactions actually processed: 20/20')
  expect(run.stdout).toContain('(without initial connection time)')
  expect(run.stderr).toBe('starting vacuum...end.\n')
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ processed: 20, expected: 20 })
})

test('a threshold that fails is 3, a client that dies is 2', async () => {
  const slow = await runCli(['bench', '-S', '-n', '-t', '5', '--threshold', 'p50<1us', conninfo()])
  expect(slow.code).toBe(3)
  expect(slow.stdout).toContain('threshold p50<1us: FAILED')
  const script = join(directory, 'bad.sql')
  writeFileSync(script, 'select 1/0;\n')
  const dead = await runCli(['bench', '-n', '-f', script, conninfo()])
  expect(dead.code).toBe(2)
  expect(dead.stderr).toContain('ERROR:  division by zero')
  expect(dead.stderr).toContain('Run was aborted; the above results are incomplete.')
})

test('what keeps a run from beginning is 1, in one clear line', async () => {
  const script = join(directory, 'wrong.sql')
  writeFileSync(script, '\\set a foo(1)\n')
  const port = await freePort()
  const cases: [string[], RegExp][] = [
    [['-f', script, conninfo()], /wrong\.sql:1: unexpected function name \(foo\) in command "set"/],
    [['-f', join(directory, 'missing.sql'), conninfo()], /could not open file .*missing\.sql/],
    [[conninfo('load_balance_hosts=foo')], /invalid load_balance_hosts value: "foo"/],
    [['host=a,b,c port=1,2'], /could not match 2 port numbers to 3 hosts/],
    [[`host=127.0.0.1 port=${port} user=u`], /port \d+ failed: Connection refused/],
    [['-b', 'nosuch', conninfo()], /no builtin script found for name "nosuch"/],
    [['--no-such-flag', conninfo()], /no-such-flag/],
    [['-t', '1', '-T', '1', conninfo()], /time/],
  ]
  for (const [argv, message] of cases) {
    const run = await runCli(['bench', '-n', ...argv])
    expect([argv, run.code]).toEqual([argv, 1])
    expect(run.stderr).toMatch(message)
    expect(run.stderr).not.toMatch(/^\s+at /m)
    expect(run.stdout).toBe('')
  }
})

test('Ctrl-C lets clients finish and still reports', async () => {
  const { startCli } = await import('../support/run-cli.js')
  const program = startCli(['bench', '-S', '-n', '-T', '60', '-P', '1', conninfo()])
  await program.waitForOutput(/progress: 1\.\d s/)
  program.signal('SIGINT')
  const run = await program.ended
  expect(run.stdout).toContain('number of transactions actually processed:')
  expect(run.code).toBe(0)
})

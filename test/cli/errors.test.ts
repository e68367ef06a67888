/** What goes wrong is one line, a hint and an exit code; never a stack trace. Results on stdout, the rest on stderr. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { runCli, runCliJson } from '../support/run-cli.js'

const dir = mkdtempSync(join(tmpdir(), 'pgshard-cli-'))
afterAll(() => rmSync(dir, { recursive: true }))

const three = 'fixtures/config/three-mistakes.toml'
const check = ['config', 'check']

describe('configuration', () => {
  test('three mistakes: all three with file and line, exit 3', async () => {
    const { code, stdout, stderr } = await runCli([...check, '--config', three])
    expect(code).toBe(3)
    expect(stdout).toBe('')
    expect(stderr.split('\n')).toEqual([
      'pgshard: the configuration has 3 problems',
      'DETAIL:',
      `  ${three}:4: unknown key "defualt_pool_size" in [general]; did you mean "default_pool_size"?`,
      `  ${three}:5: pooler_mode must be one of transaction, session, statement, not "transactional"; did you mean "transaction"?`,
      `  ${three}:17: database "shop" has a shard 2 but no shard 1; shards are numbered from 0 without gaps`,
      'HINT: correct the lines named; every key is in docs/config.md',
      '',
    ])
  })

  test('the same with --json is one object on stdout', async () => {
    const { error } = await runCliJson<{ error: { code: string; detail: string } }>([
      ...check,
      '--config',
      three,
    ])
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.detail.split('\n')).toHaveLength(3)
  })

  test('a missing file', async () => {
    const { code, stderr } = await runCli([...check, '--config', 'nowhere.toml'])
    expect(code).toBe(3)
    expect(stderr).toBe(
      'pgshard: could not open file "nowhere.toml": no such file or directory\nHINT: check the path and that this user may read it\n',
    )
  })

  test('nothing to work with', async () => {
    const { code, stderr } = await runCli(check, { cwd: dir })
    expect(code).toBe(3)
    expect(stderr).toMatch(/^pgshard: no database is configured\nHINT: give --config FILE/)
  })

  test("the files of the working directory, and PgDog's verb with its flags in front", async () => {
    writeFileSync(join(dir, 'pgdog.toml'), '[[databases]]\nname = "d"\nhost = "h"\n')
    writeFileSync(
      join(dir, 'users.toml'),
      '[[users]]\nname = "u"\ndatabase = "d"\npassword = "x"\n',
    )
    const plain = await runCli(check, { cwd: dir })
    expect(plain).toMatchObject({
      code: 0,
      stdout: 'database "d": 1 shard, 1 host\n1 user, 0 warnings\n',
      stderr: '',
    })
    const verb = await runCli(['-c', 'pgdog.toml', 'configcheck'], { cwd: dir })
    expect(verb).toMatchObject({ code: 0, stdout: plain.stdout })
    rmSync(join(dir, 'pgdog.toml'))
    rmSync(join(dir, 'users.toml'))
  })

  test('warnings go to stderr and are silent with --quiet', async () => {
    const args = [...check, '-d', 'postgres://h/d']
    expect((await runCli(args)).stderr).toBe(
      'warning: database "d" has no user; nobody can connect to it\n',
    )
    expect((await runCli([...args, '--quiet'])).stderr).toBe('')
  })

  test('config show hides passwords and names sources', async () => {
    const args = ['config', 'show', '-d', 'postgres://u:hush@h/d', '--changed']
    const { code, stdout, stderr } = await runCli(args, { env: { PGDOG_PORT: '7000' } })
    expect(code).toBe(0)
    expect(stdout + stderr).not.toContain('hush')
    expect(stdout).toMatch(/^general\.port +7000 +environment PGDOG_PORT$/m)
    expect(stdout).toMatch(/^users\[0\]\.password +\(hidden\) +--database-url 1$/m)
  })

  test('config buckets refuses the number of shards that there is', async () => {
    const args = ['config', 'buckets', '-c', 'fixtures/config/sharded.toml', '--to', '2']
    const { code, stderr } = await runCli(args)
    expect(code).toBe(2)
    expect(stderr).toContain('pgshard: database "shop" has 2 shards already\n')
  })
})

describe('usage', () => {
  test.each<[string[], string]>([
    [
      ['config', 'check', '--confg', 'x'],
      'pgshard: nonexistent flag: --confg\nHINT: see "pgshard config check --help"\n',
    ],
    [
      ['config', 'buckets', '--to', 'x'],
      'pgshard: --to: expected an integer but received: x\nHINT: see "pgshard config buckets --help"\n',
    ],
    [
      ['config', 'check', 'x'],
      'pgshard: unexpected argument: x\nHINT: see "pgshard config check --help"\n',
    ],
    [['confgi'], 'pgshard: there is no command "confgi"\nHINT: did you mean "pgshard config"?\n'],
    [
      ['hash-password'],
      'pgshard: the password is empty\nHINT: see "pgshard hash-password --help"\n',
    ],
  ])('%j', async (args, expected) => {
    const { code, stdout, stderr } = await runCli(args)
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expected })
  })

  test('--version', async () => {
    const { code, stdout } = await runCli(['--version'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^pgshard \d+\.\d+\.\d+\n$/)
  })
})

test('hash-password reads stdin, and what it prints is a verifier of the password', async () => {
  const { parseScramVerifier, scramKeysSync } = await import('../../src/auth/scram-verifier.js')
  const { code, stdout } = await runCli(['hash-password'], { input: 'pencil\nnot this\n' })
  expect(code).toBe(0)
  const verifier = parseScramVerifier(stdout.trim())
  if (!verifier) throw new Error(`no verifier: ${stdout}`)
  const keys = scramKeysSync('pencil', verifier.salt, verifier.iterations)
  expect(keys.storedKey).toEqual(verifier.storedKey)
  expect(keys.serverKey).toEqual(verifier.serverKey)
})

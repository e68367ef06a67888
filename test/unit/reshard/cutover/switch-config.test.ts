import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { configSwitch, exchangeDatabases } from '../../../../src/reshard/cutover/switch-config.js'

const text = `# top
[general]
host = "a"
[[databases]] # old
name = "a"   # the old side
host = "h1"
[[databases]]
host = 'h2'
name = 'b'
database_name = 'real'
[[databases]]
name = "other"
host = "a"
[[sharded_tables]]
database = "a"
column = "a"
[[sharded_tables]]
database = "b"
column = "b"
[[mirroring]]
source_db = "a"
destination_db = "other"
`

test('names change places, servers and comments stay', () => {
  expect(exchangeDatabases(text, 'a', 'b')).toBe(`# top
[general]
host = "a"
[[databases]] # old
database_name = "a"
name = "b"   # the old side
host = "h1"
[[databases]]
host = 'h2'
name = 'a'
database_name = 'real'
[[databases]]
name = "other"
host = "a"
[[sharded_tables]]
database = "b"
column = "a"
[[sharded_tables]]
database = "a"
column = "b"
[[mirroring]]
source_db = "b"
destination_db = "other"
`)
})

test('what lines do not tell is written anew with the same values', () => {
  const inline = 'databases = [{ name = "a", host = "h1" }, { name = "b", host = "h2" }]\n'
  expect(parse(exchangeDatabases(inline, 'a', 'b'))).toEqual({
    databases: [
      { name: 'b', host: 'h1', database_name: 'a' },
      { name: 'a', host: 'h2', database_name: 'b' },
    ],
  })
})

test('exchanging twice gives the same databases', () => {
  const once = exchangeDatabases(text, 'a', 'b')
  const [first] = (parse(exchangeDatabases(once, 'a', 'b')) as { databases: object[] }).databases
  expect(first).toEqual({ name: 'a', host: 'h1', database_name: 'a' })
})

test('a name that is not there is refused', () => {
  expect(() => exchangeDatabases(text, 'a', 'c')).toThrow(
    expect.objectContaining({ code: 'RESHARD_CONFIG_FILE' }),
  )
})

test('the file is replaced, the old one kept, and undone', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'pgshard-switch-')), 'pgdog.toml')
  await writeFile(path, text)
  const change = configSwitch(path, 'a', 'b')
  await change.prepare()
  expect(await readFile(path, 'utf8')).toBe(text)
  const backup = (await change.commit()) ?? ''
  expect(backup.endsWith('pgdog.bak.toml')).toBe(true)
  expect(await readFile(backup, 'utf8')).toBe(text)
  expect(await readFile(path, 'utf8')).toBe(exchangeDatabases(text, 'a', 'b'))
  await change.undo()
  expect(await readFile(path, 'utf8')).toBe(text)
})

test('a file that someone else changed meanwhile is left alone', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'pgshard-switch-')), 'pgdog.toml')
  await writeFile(path, text)
  const change = configSwitch(path, 'a', 'b')
  await change.prepare()
  await writeFile(path, `${text}# more\n`)
  await expect(change.commit()).rejects.toMatchObject({ code: 'RESHARD_CONFIG_FILE' })
  expect(await readFile(path, 'utf8')).toBe(`${text}# more\n`)
})

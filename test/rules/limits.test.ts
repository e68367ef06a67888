/** docs/limits.md has a line for each thing that is not promised, and for each refused key of the configuration. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { refusedKeys } from '../../src/config/keys/refused-keys.js'

const text = readFileSync('docs/limits.md', 'utf8')
const lines = text.split('\n').filter((line) => /^[-|] /.test(line))

/** What another PostgreSQL would give and several shards do not. */
const notPromised: readonly [string, RegExp][] = [
  ['catalogs and pg_stat_*', /Catalogs.*pg_stat_\*.*shard 0/],
  ['system columns', /system columns.*refused/],
  ['backend pid and server addresses', /`pg_backend_pid\(\)` and server address functions are/],
  ['currval and lastval over shards', /`currval`, `lastval`.*refused/],
  ['transaction id and snapshot functions', /transaction id and snapshot functions.*refused/],
  ['NOTIFY from triggers', /NOTIFY from a trigger/],
  ['pg_dump of a sharded database', /`pg_dump` of a sharded database/],
  ['large objects', /Large objects live on shard 0/],
  ['two-phase commands by the client', /two-phase commands by the client.*refused/],
  ['a lost decision row', /decision row that is lost with an asynchronous failover/],
  ['two-phase commits seen at different times', /see a two-phase commit on one shard a moment/],
  ['logical replication through the proxy', /Logical replication through the proxy.*refused/],
  ['session mode under cutover', /client in session mode.*cutover/],
  ['COPY FROM FILE or PROGRAM', /`COPY FROM 'file'` and `PROGRAM`.*refused/],
]

test.each(notPromised)('%s: one line', (_, pattern) => {
  expect(lines.filter((line) => pattern.test(line))).toHaveLength(1)
})

test('no line stands twice', () => {
  const subjects = lines.map((line) => line.split(' | ')[0] as string)
  expect(subjects.filter((one, i) => one !== '| What' && subjects.indexOf(one) !== i)).toEqual([])
})

describe('refused keys', () => {
  /** Sections that the page names by what they are for. */
  const words: Record<string, RegExp> = {
    vault_path: /Vault/,
    server_vault_path: /Vault/,
    vault: /Vault/,
    column: /multi_tenant/,
  }

  test('each is named', () => {
    const names = [...refusedKeys].map((key) => key.replace('.*', '').split('.').at(-1) as string)
    const missing = names.filter((name) => !(words[name] ?? new RegExp(`\\b${name}\\b`)).test(text))
    expect(missing).toEqual([])
  })
})

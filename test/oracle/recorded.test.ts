/**
 * The recorded statements of fixtures/sql on one PostgreSQL, through serve, and over three shards: the same answer,
 * or over shards a refusal with 0A000 and a hint. A wrong answer never.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { projectRoot } from '../support/run-cli.js'
import { type Answer, ask, asMultiset, type Mode, modes } from './ask.js'
import { useOracle } from './targets.js'

interface RecordedRead {
  id: string
  about: string
  sql: string
  columns: string[]
  tag: string
  rows: (string | null)[][]
  ordered: boolean
}

interface RecordedWrite {
  id: string
  about: string
  sql: string
  tag: string
  rows?: (string | null)[][]
  check: { sql: string; rows: (string | null)[][] }
}

const read = (name: string): string => readFileSync(join(projectRoot, 'fixtures/sql', name), 'utf8')
const reads = JSON.parse(read('reads.json')) as RecordedRead[]
const writes = JSON.parse(read('writes.json')) as RecordedWrite[]
const setupSql = read('setup.sql')
const tables = ['acct', 'item', 'lonely', 'hollow']
/** Everything but the rows. */
const shardSql = setupSql.replace(/insert into[\s\S]*?;(?=\s|$)/gi, '')

const sharding = tables
  .map(
    (name) =>
      `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "tenant"\ndata_type = "bigint"\n`,
  )
  .join('\n')

const sorted = (answer: Answer, ordered: boolean) =>
  ordered ? answer.rows.map((row) => JSON.stringify(row)) : asMultiset(answer.rows)

describe('recorded statements over plain, proxied and sharded', () => {
  const oracle = useOracle({ setupSql, shardSql, tables, shards: 3, sharding, searchPath: 'xs' })

  const cases = reads.flatMap((one) => modes.map((mode) => [one.id, mode, one] as const))

  it.each(cases)('%s %s reads the same', async (_id, mode: Mode, one) => {
    const { plain, proxied, sharded } = oracle()
    const direct = await ask(plain, one.sql, mode)
    const through = await ask(proxied, one.sql, mode)
    expect(through).toEqual(direct)
    if (mode === 'simple') expect(direct.columns).toEqual(one.columns)
    const over = await ask(sharded, one.sql, mode)
    if (over.error && !direct.error) {
      expect(over.error.sqlstate, over.error.message).toBe('0A000')
      expect(over.error.hint).toBeTruthy()
      return
    }
    expect(over.columns).toEqual(direct.columns)
    expect(over.tag).toBe(direct.tag)
    expect(sorted(over, one.ordered)).toEqual(sorted(direct, one.ordered))
  })

  it.each(writes.map((one) => [one.id, one] as const))(
    '%s writes the same or nothing',
    async (_id, one) => {
      const { plain, sharded, served, reload } = oracle()
      await reload()
      const over = await ask(sharded, one.sql, 'simple')
      await ask(plain, 'begin', 'simple')
      const direct = await ask(plain, one.sql, 'simple')
      const wanted = await ask(plain, one.check.sql, 'simple')
      await ask(plain, 'rollback', 'simple')
      if (over.error) {
        expect(over.error.sqlstate, over.error.message).toBe('0A000')
      } else {
        expect(over.tag).toBe(direct.tag)
        const check = await ask(sharded, one.check.sql, 'simple')
        if (!check.error) expect(asMultiset(check.rows)).toEqual(asMultiset(wanted.rows))
      }
      expect(served.program.stderr).not.toMatch(/internal error/i)
    },
  )
})

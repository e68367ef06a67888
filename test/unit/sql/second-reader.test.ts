import { readdirSync, readFileSync } from 'node:fs'
import { astVisitor, parse } from 'pgsql-ast-parser'
import { beforeAll, describe, expect, it } from 'vitest'
import { levelsOf } from '../../../src/routing/resolve.js'
import { loadParser } from '../../../src/sql/parse.js'
import { QueryReader } from '../../../src/sql/read-query.js'

const statements = [
  ...readFileSync('fixtures/sql/orm.jsonl', 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { sql: string }).sql),
  ...readdirSync('fixtures/sql/routing').map(
    (file) =>
      (JSON.parse(readFileSync(`fixtures/sql/routing/${file}`, 'utf8')) as { sql: string }).sql,
  ),
]

/** Tables that the second reader sees, names of CTEs left out; undefined when it cannot read the text. */
function tablesOf(sql: string): Set<string> | undefined {
  try {
    const tables = new Set<string>()
    const ctes = new Set<string>()
    const visitor = astVisitor((map) => ({
      with: (node) => {
        for (const bind of node.bind) ctes.add(bind.alias.name)
        map.super().with(node)
      },
      tableRef: (node) => {
        tables.add(node.name)
        map.super().tableRef(node)
      },
    }))
    for (const statement of parse(sql)) visitor.statement(statement)
    return new Set([...tables].filter((name) => !ctes.has(name)))
  } catch {
    return undefined
  }
}

beforeAll(loadParser)

describe('tables, by two readers', () => {
  it('are the same wherever both read the statement', () => {
    const reader = new QueryReader()
    const differing: string[] = []
    let compared = 0
    for (const sql of statements) {
      const theirs = tablesOf(sql)
      const read = reader.read(sql).statements[0]?.template.statement
      if (!theirs || !read?.root || !/^(?:select|insert|update|delete)$/.test(read.kind)) continue
      compared++
      const ours = new Set(
        levelsOf(read.root).flatMap((one) => one.relations.map((use) => use.name)),
      )
      if (JSON.stringify([...ours].sort()) !== JSON.stringify([...theirs].sort()))
        differing.push(sql)
    }
    expect(compared).toBeGreaterThan(100)
    expect(differing).toEqual([])
  }, 30_000) // the other reader is slow
})

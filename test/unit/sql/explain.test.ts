import { describe, expect, it } from 'vitest'
import { readExplain } from '../../../src/sql/explain.js'

describe('EXPLAIN as written', () => {
  it.each([
    ['EXPLAIN SELECT 1', 'EXPLAIN ', 'SELECT 1', false, 'text'],
    ['explain analyze verbose select 1', 'explain analyze verbose ', 'select 1', true, 'text'],
    [
      'EXPLAIN /* c */ (FORMAT JSON) SELECT 1',
      'EXPLAIN /* c */ (FORMAT JSON) ',
      'SELECT 1',
      false,
      'json',
    ],
    [
      "EXPLAIN (analyze false, format 'Yaml') TABLE t",
      "EXPLAIN (analyze false, format 'Yaml') ",
      'TABLE t',
      false,
      'yaml',
    ],
    [
      'EXPLAIN (ANALYZE, ANALYZE 0, COSTS OFF) SELECT 1',
      'EXPLAIN (ANALYZE, ANALYZE 0, COSTS OFF) ',
      'SELECT 1',
      false,
      'text',
    ],
    [
      'EXPLAIN (SELECT 1) UNION (SELECT 2)',
      'EXPLAIN ',
      '(SELECT 1) UNION (SELECT 2)',
      false,
      'text',
    ],
    ['EXPLAIN ((SELECT 1))', 'EXPLAIN ', '((SELECT 1))', false, 'text'],
  ])('%s', (sql, prefix, body, analyze, format) => {
    expect(readExplain(sql)).toEqual({ prefix, body, analyze, format })
  })

  it.each(['SELECT 1', '', 'EXPLAIN', 'EXPLAIN (ANALYZE)'])('%j is none', (sql) => {
    expect(readExplain(sql)).toBeUndefined()
  })
})

import { beforeAll, expect, test } from 'vitest'
import { loadParser } from '../../../src/sql/parse.js'
import { traceContextOf } from '../../../src/sql/trace-context.js'

const ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const found = { traceId: ID, spanId: SPAN }

beforeAll(() => loadParser())

test.each([
  [`SELECT 1 /*traceparent='00-${ID}-${SPAN}-01'*/`, found],
  [`/* a='b', traceparent='00-${ID}-${SPAN}-00' */ SELECT 1`, found],
  [`SELECT 1 -- traceparent=00-${ID}-${SPAN}-01`, found],
  [`SELECT 'traceparent=''00-${ID}-${SPAN}-01'''`, undefined],
  [`SELECT 1 /*traceparent='ff-${ID}-${SPAN}-01'*/`, undefined],
  [`SELECT 1 /*traceparent='00-${'0'.repeat(32)}-${SPAN}-01'*/`, undefined],
  [`SELECT 1 /*traceparent='00-${ID.toUpperCase()}-${SPAN}-01'*/`, undefined],
  ['SELECT traceparent FROM t', undefined],
])('%s', (sql, expected) => {
  expect(traceContextOf(sql)).toEqual(expected)
})

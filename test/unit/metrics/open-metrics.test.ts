import { describe, expect, test } from 'vitest'
import { familiesOf } from '../../../src/admin/metrics/families.js'
import type { Family } from '../../../src/metrics/family.js'
import { metricsText } from '../../../src/metrics/open-metrics.js'
import { otlpPayload } from '../../../src/metrics/otlp.js'
import { RequestTimes, WRITE } from '../../../src/metrics/request-times.js'
import { TIME_BOUNDS, TimeBuckets } from '../../../src/metrics/time-buckets.js'
import { readOpenMetrics, sampleValue } from '../../support/strict-open-metrics.js'
import { fakePool, fakeProxy } from '../admin/fake-proxy.js'

const times = (counts: readonly number[], shard = 0, requestClass = 'read', worker = 0) => ({
  worker,
  database: 'app',
  user: 'al"i\\ce\n',
  requestClass,
  shard,
  counts,
  sumMs: 1500,
})

const none = TIME_BOUNDS.map(() => 0)

function view(rest: object = {}) {
  return { ...fakeProxy().view, times: () => [times([3, ...none])], ...rest }
}

/** Names that PgDog's dashboards ask for (pgdog-compat.md §2.4), but those of its query cache. */
const pgdogNames = [
  ...['clients', 'clients_locked', 'max_connections', 'prepared_statements_limit'],
  ...['query_cache_limit', 'prepared_statements', 'cl_waiting', 'sv_active', 'sv_idle'],
  ...['sv_idle_xact', 'sv_locked', 'maxwait', 'errors', 'out_of_sync'],
  ...['xact_count', 'xact_2pc_count', 'query_count', 'received', 'sent', 'xact_time']
    .concat(['idle_xact_time', 'query_time', 'prepared_evictions', 'server_errors', 'cleaned'])
    .concat(['rollbacks', 'connect_time', 'connect_count', 'reads', 'writes', 'auth_attempts'])
    .concat(['rows_inserted', 'rows_updated', 'rows_deleted'])
    .flatMap((name) => [`total_${name}`, `avg_${name}`]),
]

describe('metrics as text', () => {
  test('D204, D206: a strict reader takes all of it, and every name of PgDog is there', async () => {
    const { contentType, body } = await metricsText(familiesOf(view()))
    expect(contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    const names = readOpenMetrics(body).map(({ name }) => name)
    expect(pgdogNames.filter((name) => !names.includes(name))).toEqual([])
  })

  test('labels come back as they were, with quotes, backslashes and line feeds', async () => {
    const families = readOpenMetrics((await metricsText(familiesOf(view()))).body)
    const labels = { user: 'al"i\\ce\n', class: 'read' }
    expect(sampleValue(families, 'request_duration_seconds_count', labels)).toBe(3)
  })

  test('buckets are added from below, and over workers', async () => {
    const two = [times([3, 1, ...none.slice(1)]), times([1, 0, ...none.slice(1)], 0, 'read', 1)]
    const families = readOpenMetrics(
      (await metricsText(familiesOf(view({ times: () => two })))).body,
    )
    const at = (le: string) => sampleValue(families, 'request_duration_seconds_bucket', { le })
    expect([at('0.0001'), at('0.00025'), at('+Inf')]).toEqual([4, 5, 5])
    expect(sampleValue(families, 'request_duration_seconds_sum')).toBe(3)
  })

  test('figures of the same place are added over workers; the longest wait is the longest', async () => {
    const pools = [fakePool(), fakePool({ worker: 1, maxWaitMs: 5000 })]
    const text = await metricsText(familiesOf(view({ pools: () => pools })))
    const families = readOpenMetrics(text.body)
    expect(sampleValue(families, 'total_query_count')).toBe(60)
    expect(sampleValue(families, 'sv_idle')).toBe(6)
    expect(sampleValue(families, 'maxwait')).toBe(5)
  })

  test('the older form is for who asks for it alone; the prefix stands before each name', async () => {
    const families: Family[] = [
      { name: 'a', help: 'A.', type: 'counter', samples: [{ labels: {}, value: 1 }] },
      { name: 'b', help: 'B.', type: 'unknown', samples: [{ labels: {}, value: 2 }] },
    ]
    const old = await metricsText(families, { accept: 'text/plain;version=0.0.4', prefix: 'x_' })
    expect(old.contentType).toContain('version=0.0.4')
    expect(old.body).toContain('# TYPE x_a_total counter\nx_a_total 1')
    expect(old.body).toContain('# TYPE x_b untyped\nx_b 2')
    expect(old.body).not.toContain('EOF')
    const both = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'
    const open = readOpenMetrics((await metricsText(families, { accept: both, prefix: 'x_' })).body)
    expect(sampleValue(open, 'x_a_total')).toBe(1)
  })

  test('OTLP has the same figures as cumulative sums and histograms', () => {
    const resource = { serviceName: 'pgshard', instanceId: 'i', version: '1', namespace: 'pgdog' }
    const body = otlpPayload(familiesOf(view()), { ...resource, startedAtMs: 1000, nowMs: 2000 })
    const [{ scopeMetrics }] = JSON.parse(body).resourceMetrics
    const metrics = new Map<string, Record<string, { dataPoints: Record<string, unknown>[] }>>(
      scopeMetrics[0].metrics.map((one: { name: string }) => [one.name, one]),
    )
    const [point] = metrics.get('pgdog.total_query_count')?.['sum']?.dataPoints ?? []
    expect(point).toMatchObject({ asDouble: 30, startTimeUnixNano: '1000000000' })
    const histogram = metrics.get('pgdog.request_duration_seconds')?.['histogram']
    expect(histogram).toMatchObject({ aggregationTemporality: 2 })
    expect(histogram?.dataPoints[0]).toMatchObject({ count: '3', sum: 1.5 })
    expect(histogram?.dataPoints[0]?.['explicitBounds']).toHaveLength(TIME_BOUNDS.length)
    expect(histogram?.dataPoints[0]?.['bucketCounts']).toHaveLength(TIME_BOUNDS.length + 1)
    expect(metrics.get('pgdog.max_connections')?.['gauge']?.dataPoints).toEqual([
      expect.objectContaining({ asDouble: 0 }),
    ])
  })
})

describe('times of requests', () => {
  test('a time falls into the first bucket whose bound it does not pass', () => {
    const buckets = new TimeBuckets()
    for (const ms of [0.1, 0.11, 60_000, 60_001]) buckets.record(ms)
    expect([...buckets.counts.entries()].filter(([, count]) => count > 0)).toEqual([
      [0, 1],
      [1, 1],
      [TIME_BOUNDS.length - 1, 1],
      [TIME_BOUNDS.length, 1],
    ])
    expect(buckets.sumMs).toBeCloseTo(120_001.21)
  })

  test('classes and shards are kept apart', () => {
    const requests = new RequestTimes()
    requests.record(0, 0, 1)
    requests.record(0, 1, 1)
    requests.record(WRITE, -1, 1)
    requests.record(WRITE, -1, 1)
    const found = [...requests.all()].map(({ requestClass, shard, buckets }) => [
      requestClass,
      shard,
      buckets.counts.reduce((sum, count) => sum + count, 0),
    ])
    expect(found).toEqual([
      ['read', 0, 1],
      ['read', 1, 1],
      ['write', -1, 2],
    ])
  })
})

/** Metrics pushed to a collector: a real HTTP server that takes each push apart as the OTLP specification says. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { endAll } from '../../support/workers.js'

const postgres = usePostgres()

interface Push {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue: string }
}

interface Point {
  readonly attributes: readonly Attribute[]
  readonly timeUnixNano: string
  readonly startTimeUnixNano?: string
  readonly asDouble?: number
  readonly count?: string
  readonly sum?: number
  readonly bucketCounts?: readonly string[]
  readonly explicitBounds?: readonly number[]
}

interface Data {
  readonly aggregationTemporality?: number
  readonly isMonotonic?: boolean
  readonly dataPoints: readonly Point[]
}

interface Metric {
  readonly name: string
  readonly description: string
  readonly gauge?: Data
  readonly sum?: Data
  readonly histogram?: Data
}

let collector: Server | undefined
let answer = 200
const pushes: Push[] = []

afterEach(() => {
  collector?.closeAllConnections()
  collector?.close()
  pushes.length = 0
  answer = 200
})

async function startCollector(): Promise<string> {
  collector = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method, url, headers } = request
      pushes.push({ path: `${method} ${url}`, headers, body: Buffer.concat(chunks).toString() })
      response.writeHead(answer, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => collector?.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
}

const serveWith = (otel: readonly string[], args: readonly string[] = []): Promise<Served> => {
  const [at] = postgres().servers
  if (!at) throw new Error('no server')
  return startServe({
    shards: [{ ...at, database: postgres().database }],
    tables: ['[otel]', ...otel].join('\n'),
    args,
  })
}

/** Every 64-bit integer of OTLP is a string in JSON, and its name in lowerCamelCase. */
const isInteger = (one: unknown): boolean => typeof one === 'string' && /^\d+$/.test(one)

/** What is against opentelemetry/proto/metrics/v1, in words. */
function faultsOf(metric: Metric): string[] {
  const kinds = (['gauge', 'sum', 'histogram'] as const).filter((kind) => metric[kind])
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1) return [`${metric.name}: data is ${kinds.join()}`]
  const data = metric[kind] as Data
  const faults: string[] = []
  const say = (isWrong: boolean, what: string) => {
    if (isWrong) faults.push(`${metric.name}: ${what}`)
  }
  say(metric.description === '', 'no description')
  say(kind !== 'gauge' && data.aggregationTemporality !== 2, 'not cumulative')
  say(kind === 'sum' && data.isMonotonic !== true, 'not monotonic')
  for (const point of data.dataPoints) {
    say(!isInteger(point.timeUnixNano), 'no time')
    if (kind !== 'gauge') {
      say(!isInteger(point.startTimeUnixNano), 'no start')
      say(BigInt(point.startTimeUnixNano ?? 0) > BigInt(point.timeUnixNano), 'starts in the future')
    }
    const keys = point.attributes.map(({ key }) => key)
    say(new Set(keys).size !== keys.length, 'an attribute twice')
    say(
      point.attributes.some(({ value }) => typeof value.stringValue !== 'string'),
      'no text',
    )
    if (kind === 'histogram') faults.push(...histogramFaults(metric.name, point))
    else say(typeof point.asDouble !== 'number', 'no number')
  }
  return faults
}

function histogramFaults(
  name: string,
  { bucketCounts = [], explicitBounds = [], count = '', sum }: Point,
): string[] {
  const isRising = explicitBounds.every((bound, i) => bound > (explicitBounds[i - 1] ?? 0))
  const inBuckets = bucketCounts.reduce((total, one) => total + Number(one), 0)
  const wrong: [boolean, string][] = [
    [bucketCounts.length !== explicitBounds.length + 1, 'buckets and bounds do not fit'],
    [!isRising, 'bounds do not rise'],
    [![count, ...bucketCounts].every(isInteger), 'counts are no integers'],
    [Number(count) !== inBuckets, 'the count is not that of its buckets'],
    [typeof sum !== 'number' || sum < 0, 'no sum'],
  ]
  return wrong.filter(([isWrong]) => isWrong).map(([, what]) => `${name}: ${what}`)
}

interface Parts {
  readonly resource: Readonly<Record<string, string>>
  readonly metrics: readonly Metric[]
}

function partsOf({ body }: Push): Parts {
  const { resourceMetrics } = JSON.parse(body)
  const [{ resource, scopeMetrics }] = resourceMetrics
  const attributes: Attribute[] = resource.attributes
  return {
    resource: Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue])),
    metrics: scopeMetrics.flatMap(({ metrics }: { metrics: Metric[] }) => metrics),
  }
}

const lastPush = (): Push => pushes.at(-1) as Push

const countOf = (parts: Parts): number =>
  (parts.metrics.find(({ name }) => name === 'db.client_queries')?.sum?.dataPoints ?? []).reduce(
    (total, { asDouble }) => total + (asDouble ?? 0),
    0,
  )

test('D207: each push is OTLP/HTTP in JSON, with the keys of [otel], and the sum of two workers', async () => {
  const endpoint = await startCollector()
  const served = await serveWith(
    [
      `endpoint = "${endpoint}/"`,
      'namespace = "db"',
      'push_interval = 100',
      'datadog_api_key = "key-of-datadog"',
      'headers = { x-tenant = "seven" }',
    ],
    ['--workers', '2'],
  )
  const clients = await Promise.all(Array.from({ length: 8 }, () => served.connect()))
  for (const client of clients) for (let i = 0; i < 3; i++) await client.query('SELECT 1 AS x')
  await waitFor(() => pushes.length > 0 && countOf(partsOf(lastPush())) === 24)
  const push = lastPush()
  expect(push.path).toBe('POST /v1/metrics')
  expect(push.headers).toMatchObject({
    'content-type': 'application/json',
    'x-tenant': 'seven',
    'dd-api-key': 'key-of-datadog',
  })
  const { resource, metrics } = partsOf(push)
  expect(resource).toMatchObject({ 'service.name': 'pgshard' })
  expect(resource['service.instance.id']).toMatch(/./)
  expect(metrics.flatMap(faultsOf)).toEqual([])
  expect(metrics.filter(({ name }) => !name.startsWith('db.'))).toEqual([])
  expect(new Set(metrics.map(({ name }) => name)).size).toBe(metrics.length)
  const requests = metrics.find(({ name }) => name === 'db.request_duration_seconds')
  const reads = requests?.histogram?.dataPoints.filter(({ attributes }) =>
    attributes.some(({ key, value }) => key === 'class' && value.stringValue === 'read'),
  )
  expect(reads?.reduce((total, { count }) => total + Number(count), 0)).toBe(24)
  await endAll(clients)
})

test('a collector that fails is said once, and that it works again too', async () => {
  const endpoint = await startCollector()
  answer = 503
  const served = await serveWith([`endpoint = "${endpoint}/v1/metrics"`, 'push_interval = 50'])
  await waitFor(() => pushes.length >= 4)
  expect(lastPush().path).toBe('POST /v1/metrics')
  answer = 200
  await served.program.waitForOutput(/metrics are pushed again/)
  const said = served.program.stderr.match(/metrics cannot be pushed.*503/g)
  expect(said).toHaveLength(1)
})

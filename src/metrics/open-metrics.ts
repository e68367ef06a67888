/** Metrics as text, by prom-client: OpenMetrics, or the older form of Prometheus for who asks for it alone. */
import {
  type Metric,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
  type RegistryContentType,
} from 'prom-client'
import { BOUNDS, type Family, type HistogramFamily } from './family.js'

/** Floats as OpenMetrics wants them: `1.0`, not `1`. */
const bound = (seconds: number): string =>
  Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds)

interface TextValue extends MetricValue<string> {
  metricName?: string
}

function histogramValues({ name, samples }: HistogramFamily, prefix: string): TextValue[] {
  const full = prefix + name
  return samples.flatMap(({ labels, counts, sumSeconds }) => {
    let below = 0
    const buckets = counts.map((count, at): TextValue => {
      below += count
      const seconds = BOUNDS[at]
      const le = seconds === undefined ? '+Inf' : bound(seconds)
      return { metricName: `${full}_bucket`, labels: { ...labels, le }, value: below }
    })
    return [
      ...buckets,
      { metricName: `${full}_count`, labels, value: below },
      { metricName: `${full}_sum`, labels, value: sumSeconds },
    ]
  })
}

/** What the registry asks of a metric. */
function metricOf(family: Family, prefix: string, isOpen: boolean): Metric {
  const name = prefix + family.name
  const type = family.type === 'unknown' && !isOpen ? 'untyped' : family.type
  const isOldCounter = family.type === 'counter' && !isOpen
  const values: TextValue[] =
    family.type === 'histogram'
      ? histogramValues(family, prefix)
      : family.samples.map(({ labels, value }) => ({ labels, value }))
  const object = { name: isOldCounter ? `${name}_total` : name, help: family.help, type, values }
  return {
    ...object,
    get: async () => object as unknown as MetricObjectWithValues<MetricValue<string>>,
  } as unknown as Metric
}

export interface MetricsText {
  readonly contentType: string
  readonly body: string
}

/** Whoever does not ask for the older form alone gets OpenMetrics. */
const wantsOpen = (accept: string | undefined): boolean =>
  accept === undefined || accept.includes('openmetrics') || !/text\/plain|text\/\*/.test(accept)

/** `prefix` stands before each name as it is (`openmetrics_namespace`). */
export async function metricsText(
  families: readonly Family[],
  {
    prefix = '',
    accept,
  }: { readonly prefix?: string | undefined; readonly accept?: string | undefined } = {},
): Promise<MetricsText> {
  const isOpen = wantsOpen(accept)
  const registry = new Registry<RegistryContentType>()
  registry.setContentType(
    isOpen ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE,
  )
  for (const family of families) registry.registerMetric(metricOf(family, prefix, isOpen))
  return { contentType: registry.contentType, body: await registry.metrics() }
}

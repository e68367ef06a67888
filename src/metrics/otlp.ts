/**
 * Metrics as OTLP/HTTP takes them in JSON: cumulative sums and histograms, since the start of the proxy.
 * @see the OpenTelemetry specification, "OTLP/HTTP", and opentelemetry/proto/metrics/v1/metrics.proto
 */
import { BOUNDS, type Family, type Labels } from './family.js'

export interface OtlpResource {
  readonly serviceName: string
  readonly instanceId: string
  readonly version: string
  readonly startedAtMs: number
  readonly nowMs: number
  /** Before each name, with a dot. */
  readonly namespace: string
}

/** AGGREGATION_TEMPORALITY_CUMULATIVE */
const CUMULATIVE = 2

/** 64-bit integers are strings in JSON. */
const nanos = (ms: number): string => (BigInt(Math.round(ms)) * 1_000_000n).toString()

const attribute = (key: string, value: string) => ({ key, value: { stringValue: value } })

const attributesOf = (labels: Labels) =>
  Object.entries(labels).map(([key, value]) => attribute(key, value))

function metricOf(family: Family, resource: OtlpResource) {
  const time = { timeUnixNano: nanos(resource.nowMs) }
  const span = { ...time, startTimeUnixNano: nanos(resource.startedAtMs) }
  const about = {
    name: resource.namespace === '' ? family.name : `${resource.namespace}.${family.name}`,
    description: family.help,
  }
  if (family.type === 'histogram') {
    const dataPoints = family.samples.map(({ labels, counts, sumSeconds }) => ({
      ...span,
      attributes: attributesOf(labels),
      count: String(counts.reduce((sum, count) => sum + count, 0)),
      sum: sumSeconds,
      bucketCounts: counts.map(String),
      explicitBounds: BOUNDS,
    }))
    return { ...about, histogram: { aggregationTemporality: CUMULATIVE, dataPoints } }
  }
  // JSON has no infinity: a limit that is not set is not pushed
  const finite = family.samples.filter(({ value }) => Number.isFinite(value))
  const points = (around: object) =>
    finite.map(({ labels, value }) => ({
      ...around,
      attributes: attributesOf(labels),
      asDouble: value,
    }))
  if (family.type === 'gauge') return { ...about, gauge: { dataPoints: points(time) } }
  const sum = { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints: points(span) }
  return { ...about, sum }
}

export function otlpPayload(families: readonly Family[], resource: OtlpResource): string {
  const attributes = [
    attribute('service.name', resource.serviceName),
    attribute('service.instance.id', resource.instanceId),
    attribute('service.version', resource.version),
  ]
  const scope = { name: resource.serviceName, version: resource.version }
  const metrics = families
    .filter(({ samples }) => samples.length > 0)
    .map((family) => metricOf(family, resource))
  return JSON.stringify({
    resourceMetrics: [{ resource: { attributes }, scopeMetrics: [{ scope, metrics }] }],
  })
}

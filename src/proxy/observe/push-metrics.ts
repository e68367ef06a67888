/** Pushes metrics to an OTLP collector at intervals. A push that fails is said once, until one succeeds again. */
import { familiesOf } from '../../admin/metrics/families.js'
import type { ProxyView } from '../../admin/proxy-view.js'
import type { Clock, Timer } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { OtelConfig } from '../../config/loaded-config.js'
import { toEngineError } from '../../errors/engine-error.js'
import { otlpPayload } from '../../metrics/otlp.js'
import { httpRequest } from '../../net/http-request.js'

export interface PushSources {
  readonly clock: Clock
  readonly log: Log
  readonly instanceId: string
  otel(): OtelConfig
  look(): ProxyView | Promise<ProxyView>
}

/** A collector that takes longer would pile pushes up. */
const TIMEOUT_MS = 10_000

/** @returns how to end it */
export function pushMetrics(sources: PushSources): () => void {
  const { clock, log } = sources
  let timer: Timer | undefined
  let isFailing = false
  let isOver = false
  const next = () => {
    if (!isOver) timer = clock.after(sources.otel().pushIntervalMs, () => void push())
  }
  const push = async () => {
    try {
      await pushOnce(sources)
      if (isFailing) log.info('metrics are pushed again')
      isFailing = false
    } catch (error) {
      if (!isFailing) log.warn('metrics cannot be pushed', { reason: toEngineError(error).message })
      isFailing = true
    }
    next()
  }
  next()
  return () => {
    isOver = true
    timer?.cancel()
  }
}

async function pushOnce(sources: PushSources): Promise<void> {
  const { endpoint, headers, namespace, datadogApiKey } = sources.otel()
  if (endpoint === undefined) return
  const view = await sources.look()
  const nowMs = sources.clock.nowMs()
  const body = otlpPayload(familiesOf(view), {
    serviceName: 'pgshard',
    instanceId: sources.instanceId,
    version: view.version,
    startedAtMs: nowMs - view.uptimeMs(),
    nowMs,
    namespace,
  })
  const answer = await httpRequest({
    method: 'POST',
    url: pushUrl(endpoint),
    headers: {
      'content-type': 'application/json',
      ...headers,
      ...(datadogApiKey === undefined ? {} : { 'dd-api-key': datadogApiKey }),
    },
    body,
    timeoutMs: TIMEOUT_MS,
  })
  if (answer.status >= 300) throw new Error(`the collector answered ${answer.status}`)
}

/** The convention of OTEL_EXPORTER_OTLP_ENDPOINT: a base, to which the signal's path is added. */
function pushUrl(endpoint: string): string {
  const base = endpoint.replace(/\/+$/, '')
  return base.endsWith('/v1/metrics') ? base : `${base}/v1/metrics`
}

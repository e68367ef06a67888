/** The charts of a move, for its report and for the web page: what its guard saw over time, and the steps of its cutover. Pure. */
import type { ChartSpec, ChartUnit } from '../../report/chart-spec.js'
import type { Sample } from '../guards/sample-store.js'

/** `facts` of the journal. By name, in the order in which they are shown; none of what was not seen. */
export function moveCharts(
  samples: readonly Sample[],
  facts: Readonly<Record<string, unknown>>,
): Readonly<Record<string, ChartSpec>> {
  return { ...(samples.length === 0 ? {} : overTime(samples)), ...pauseChart(facts) }
}

function overTime(samples: readonly Sample[]): Record<string, ChartSpec> {
  const times = samples.map(({ atMs }) => atMs / 1000)
  const shaded = waits(samples).map(([from, to]) => ({
    from: from / 1000,
    to: to / 1000,
    label: 'the copy waited for the sources',
  }))
  const chart = (
    title: string,
    unit: ChartUnit,
    label: string,
    values: readonly (number | null)[],
  ): ChartSpec => ({
    ...{ kind: 'lines', title, unit, times, isClock: true },
    ...{ series: [{ label, values }], shaded },
  })
  const perSecond = (of: (sample: Sample) => number) => ratesOf(samples, of)
  return {
    copy: chart(
      'Copy',
      'byteRate',
      'copied',
      perSecond((one) => one.copiedBytes),
    ),
    changes: chart(
      'Changes applied',
      'rate',
      'changes',
      perSecond((one) => one.changes),
    ),
    lag: chart(
      'Behind the sources',
      'bytes',
      'behind',
      samples.map((one) => one.lagBytes),
    ),
    wal: chart(
      'WAL kept on the sources',
      'bytes',
      'kept',
      samples.map((one) => one.walKept),
    ),
    latency: chart(
      'Answer of the sources',
      'ms',
      'answer',
      samples.map((one) => one.latencyMs),
    ),
  }
}

function ratesOf(
  samples: readonly Sample[],
  of: (sample: Sample) => number,
): readonly (number | null)[] {
  return samples.map((sample, i) => {
    const before = samples[i - 1]
    if (!before || sample.atMs <= before.atMs) return null
    // Counters begin anew when a run is taken up.
    return Math.max(0, ((of(sample) - of(before)) * 1000) / (sample.atMs - before.atMs))
  })
}

/** Times in which the copy was held. */
function waits(samples: readonly Sample[]): [number, number][] {
  const found: [number, number][] = []
  for (const [i, sample] of samples.entries()) {
    if (!sample.isHeld) continue
    const last = found.at(-1)
    const end = samples[i + 1]?.atMs ?? sample.atMs
    if (last && last[1] === sample.atMs) last[1] = end
    else found.push([sample.atMs, end])
  }
  return found
}

function pauseChart(facts: Readonly<Record<string, unknown>>): Record<string, ChartSpec> {
  const steps = facts['cutover_steps']
  if (!Array.isArray(steps)) return {}
  const known = (steps as { step: string; ms: number }[]).map(({ step, ms }) => ({
    label: step,
    ms,
  }))
  return { pause: { kind: 'steps', title: 'Steps of the cutover', steps: known } }
}

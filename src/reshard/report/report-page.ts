/** A move as one self-contained page: tables, rates, lag, WAL kept, the pause of its cutover. No scripts, nothing loaded. Pure. */
import type { Sample } from '../guards/sample-store.js'
import type { StatusReport } from '../run-status.js'
import { escapeHtml, lineChart, stepChart } from './chart.js'

export interface ReportData {
  readonly from: string
  readonly to: string
  readonly status: StatusReport
  readonly samples: readonly Sample[]
}

const style = `
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #59636e; --paper: #fff; --rule: #d1d9e0; --line: #0969da; --bar: #8250df; --wait: #bf8700; --bad: #cf222e; --good: #1a7f37 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --paper: #0d1117; --rule: #3d444d; --line: #4493f8; --bar: #ab7df8; --wait: #d29922; --bad: #f85149; --good: #3fb950 } }
* { box-sizing: border-box } body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 62rem; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.4rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem } .dim, small, figcaption small { color: var(--dim); font-weight: normal }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100% } th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--rule); text-align: left; white-space: nowrap } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .8rem; margin: 1rem 0 } dl div { border: 1px solid var(--rule); border-radius: 6px; padding: .5rem .8rem } dt { color: var(--dim); font-size: .85rem } dd { margin: 0; font-size: 1.15rem; overflow-wrap: anywhere }
figure { margin: 1rem 0 } figcaption { font-weight: 600 } svg { width: 100%; height: auto; display: block } svg text { fill: var(--dim); font-size: 11px } .rule { stroke: var(--rule) } .line { fill: none; stroke: var(--line); stroke-width: 1.5 } .dot { fill: var(--line) } .bar { fill: var(--bar) } .wait { fill: var(--wait); opacity: .25 }
.error { color: var(--bad) } .verified { color: var(--good) } .different { color: var(--bad) } pre { white-space: pre-wrap; overflow-wrap: anywhere }`

const units = ['B', 'kB', 'MB', 'GB', 'TB']

function bytes(value: number): string {
  let [amount, unit] = [value, 0]
  while (amount >= 1000 && unit < units.length - 1) {
    amount /= 1000
    unit++
  }
  return `${amount.toFixed(unit === 0 || amount >= 100 ? 0 : 1)} ${units[unit]}`
}

const count = (value: number): string => Math.round(value).toLocaleString('en-US')

export function reportPage(data: ReportData): string {
  const { from, to, status, samples } = data
  const title = `Move of ${escapeHtml(from)} to ${escapeHtml(to)}`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><style>${style}</style></head>
<body><h1>${title}</h1><p class="dim">run ${escapeHtml(status.run)}, as of the last look at it</p>
${figures(data)}${errorOf(status)}<p>Next: <code>${escapeHtml(status.next)}</code></p>
<h2>Tables</h2>${tableOf(status)}
<h2>Over time</h2>${charts(samples)}
<h2>Write pause</h2>${pause(status)}
${left(status)}</body></html>
`
}

function figures({ status, samples }: ReportData): string {
  const pauseMs = status.facts['write_pause_ms']
  const known: [string, string][] = [
    ['State', status.state],
    ['Rows copied', count(status.tables.reduce((sum, table) => sum + table.rows, 0))],
    ['Bytes copied', bytes(status.tables.reduce((sum, table) => sum + table.bytes, 0))],
    ['Changes applied', count(samples.at(-1)?.changes ?? 0)],
    ['Behind', status.lag_bytes === null ? 'no slot is left' : bytes(status.lag_bytes)],
    ['Most WAL kept', bytes(Math.max(0, ...samples.map((sample) => sample.walKept)))],
    ['Write pause', typeof pauseMs === 'number' ? `${count(pauseMs)} ms` : 'not yet'],
  ]
  const cells = known.map(
    ([name, value]) => `<div><dt>${name}</dt><dd>${escapeHtml(value)}</dd></div>`,
  )
  return `<dl>${cells.join('')}</dl>`
}

const errorOf = ({ error }: StatusReport): string =>
  error === null
    ? ''
    : `<p class="error"><b>Error:</b></p><pre class="error">${escapeHtml(error)}</pre>`

function tableOf(status: StatusReport): string {
  const rows = status.tables.map(
    (table) =>
      `<tr><td>${escapeHtml(table.name)}</td><td class="${escapeHtml(table.state)}">${escapeHtml(table.state)}</td><td class="n">${count(table.rows)}</td><td class="n">${bytes(table.bytes)}</td><td class="n">${bytes(table.total_bytes)}</td></tr>`,
  )
  return `<div class="scroll"><table><thead><tr><th>Table</th><th>State</th><th class="n">Rows</th><th class="n">Bytes copied</th><th class="n">Bytes on disk</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}

function charts(samples: readonly Sample[]): string {
  if (samples.length === 0) return '<p class="dim">Nothing was kept of this run.</p>'
  const times = samples.map((sample) => sample.atMs)
  const shaded = waits(samples)
  const chart = (
    title: string,
    values: readonly number[],
    format: (value: number) => string,
  ): string => lineChart({ title, times, values, format, shaded })
  const perSecond = (of: (sample: Sample) => number): number[] =>
    samples.map((sample, i) => {
      const before = samples[i - 1]
      if (!before || sample.atMs <= before.atMs) return 0
      // Counters begin anew when a run is taken up.
      return Math.max(0, ((of(sample) - of(before)) * 1000) / (sample.atMs - before.atMs))
    })
  return [
    chart(
      'Copy',
      perSecond((sample) => sample.copiedBytes),
      (value) => `${bytes(value)}/s`,
    ),
    chart(
      'Changes applied',
      perSecond((sample) => sample.changes),
      (value) => `${count(value)}/s`,
    ),
    chart(
      'Behind the sources',
      samples.map((sample) => sample.lagBytes),
      bytes,
    ),
    chart(
      'WAL kept on the sources',
      samples.map((sample) => sample.walKept),
      bytes,
    ),
    chart(
      'Answer of the sources',
      samples.map((sample) => sample.latencyMs),
      (value) => `${value.toFixed(1)} ms`,
    ),
    shaded.length === 0 ? '' : '<p class="dim">Shaded: the copy waited for the sources.</p>',
  ].join('')
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

function pause(status: StatusReport): string {
  const steps = status.facts['cutover_steps']
  if (!Array.isArray(steps)) return '<p class="dim">There was no cutover yet.</p>'
  return stepChart('Steps of the cutover', steps as { step: string; ms: number }[])
}

const left = (status: StatusReport): string =>
  status.left.length === 0
    ? ''
    : `<h2>Still there</h2><ul>${status.left.map((one) => `<li>${escapeHtml(one)}</li>`).join('')}</ul>`

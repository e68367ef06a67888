/** A move as one self-contained page: tables, rates, lag, WAL kept, the pause of its cutover. Nothing is loaded. Pure. */
import { type Html, html } from '../../report/html.js'
import { chartPlace, selfContainedPage } from '../../report/self-contained.js'
import { countWords, sizeWords } from '../../report/words.js'
import type { Sample } from '../guards/sample-store.js'
import type { StatusReport } from '../run-status.js'
import { moveCharts } from './move-charts.js'

export interface ReportData {
  readonly from: string
  readonly to: string
  readonly status: StatusReport
  readonly samples: readonly Sample[]
}

export function reportPage(data: ReportData): string {
  const { from, to, status, samples } = data
  const title = `Move of ${from} to ${to}`
  const charts = moveCharts(samples, status.facts)
  const overTime = Object.keys(charts).filter((name) => name !== 'pause')
  const nothing = (words: string): Html => html`<p class="dim">${words}</p>`
  const body = html`<h1>${title}</h1><p class="dim">run ${status.run}, as of the last look at it</p>
${figures(data)}${errorOf(status)}<p>Next: <code>${status.next}</code></p>
<h2>Tables</h2>${tableOf(status)}
<h2>Over time</h2>${overTime.length === 0 ? nothing('Nothing was kept of this run.') : overTime.map(chartPlace)}
<h2>Write pause</h2>${'pause' in charts ? chartPlace('pause') : nothing('There was no cutover yet.')}
${left(status)}`
  return selfContainedPage({ title, body, charts })
}

function figures({ status, samples }: ReportData): Html {
  const pauseMs = status.facts['write_pause_ms']
  const sum = (of: (table: StatusReport['tables'][number]) => number): number =>
    status.tables.reduce((total, table) => total + of(table), 0)
  const known: [string, string][] = [
    ['State', status.state],
    ['Rows copied', countWords(sum(({ rows }) => rows))],
    ['Bytes copied', sizeWords(sum(({ bytes }) => bytes))],
    ['Changes applied', countWords(samples.at(-1)?.changes ?? 0)],
    ['Behind', status.lag_bytes === null ? 'no slot is left' : sizeWords(status.lag_bytes)],
    ['Most WAL kept', sizeWords(Math.max(0, ...samples.map((sample) => sample.walKept)))],
    ['Write pause', typeof pauseMs === 'number' ? `${countWords(pauseMs)} ms` : 'not yet'],
  ]
  const cells = known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)
  return html`<dl class="figures">${cells}</dl>`
}

const errorOf = ({ error }: StatusReport): Html =>
  error === null ? html`` : html`<p class="bad"><b>Error:</b></p><pre class="bad">${error}</pre>`

const stateClass: Readonly<Record<string, string>> = { verified: 'good', different: 'bad' }

function tableOf(status: StatusReport): Html {
  const rows = status.tables.map(
    (table) =>
      html`<tr><th scope="row">${table.name}</th><td class="${stateClass[table.state] ?? ''}">${table.state}</td><td class="n">${countWords(table.rows)}</td><td class="n">${sizeWords(table.bytes)}</td><td class="n">${sizeWords(table.total_bytes)}</td></tr>`,
  )
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Tables"><table><thead><tr><th scope="col">Table</th><th scope="col">State</th><th scope="col" class="n">Rows</th><th scope="col" class="n">Bytes copied</th><th scope="col" class="n">Bytes on disk</th></tr></thead><tbody>${rows}</tbody></table></div>`
}

const left = (status: StatusReport): Html =>
  status.left.length === 0
    ? html``
    : html`<h2>Still there</h2><ul>${status.left.map((one) => html`<li>${one}</li>`)}</ul>`

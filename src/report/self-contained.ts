/** A page in one file: styles, scripts, uPlot and data inside it, nothing loaded. Only its own scripts may run. */
import { createHash } from 'node:crypto'
import { type SharedAsset, sharedAsset } from './assets.js'
import type { ChartSpec } from './chart-spec.js'
import { Html, html, scriptJson } from './html.js'

export interface SelfContainedPage {
  readonly title: string
  /** The page's content; `chartPlace(name)` marks where a chart of `charts` is drawn. */
  readonly body: Html
  readonly charts: Readonly<Record<string, ChartSpec>>
}

/** Where report.js draws the chart of this name. */
export const chartPlace = (name: string): Html => html`<div data-chart="${name}"></div>`

/** Modules as one script: what they import from each other stands before them. */
const inOneScript = (names: readonly SharedAsset[]): string =>
  names
    .map((name) =>
      sharedAsset(name)
        .replace(/^import [^\n]*\n/gm, '')
        .replace(/^export /gm, ''),
    )
    .join('\n')

const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`

export function selfContainedPage({ title, body, charts }: SelfContainedPage): string {
  const style = `${sharedAsset('uplot.css')}\n${sharedAsset('theme.css')}`
  const scripts = [
    sharedAsset('uplot.js'),
    inOneScript(['format.js', 'charts.js', 'report.js']),
  ] as const
  const policy = `default-src 'none'; base-uri 'none'; form-action 'none'; style-src ${hashOf(style)}; script-src ${scripts.map(hashOf).join(' ')}`
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>${title}</title><style>${new Html(style)}</style></head>
<body><main class="report">${body}</main>
<script type="application/json" id="charts">${scriptJson(charts)}</script>
<script>${new Html(scripts[0])}</script>
<script type="module">${new Html(scripts[1])}</script>
</body></html>
`.text
}

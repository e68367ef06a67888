/** Files that browsers get: ours beside this one, and uPlot from its package. Read once. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const read = new Map<string, string>()

/** A file of the folder `browser`, or uPlot's. */
export type SharedAsset =
  | 'charts.js'
  | 'format.js'
  | 'theme.css'
  | 'report.js'
  | 'uplot.js'
  | 'uplot.css'

/** The package may stand anywhere above this one. */
function pathOf(name: SharedAsset): string | URL {
  if (name === 'uplot.js') return require.resolve('uplot/dist/uPlot.iife.min.js')
  if (name === 'uplot.css') return require.resolve('uplot/dist/uPlot.min.css')
  return new URL(`./browser/${name}`, import.meta.url)
}

export function sharedAsset(name: SharedAsset): string {
  const known = read.get(name)
  if (known !== undefined) return known
  const text = readFileSync(pathOf(name), 'utf8')
  read.set(name, text)
  return text
}

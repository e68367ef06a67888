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

const ofPackage: Readonly<Partial<Record<SharedAsset, string>>> = {
  'uplot.js': 'uplot/dist/uPlot.iife.min.js',
  'uplot.css': 'uplot/dist/uPlot.min.css',
}

export function sharedAsset(name: SharedAsset): string {
  const known = read.get(name)
  if (known !== undefined) return known
  const inPackage = ofPackage[name]
  const text = readFileSync(
    inPackage ? require.resolve(inPackage) : new URL(`./browser/${name}`, import.meta.url),
    'utf8',
  )
  read.set(name, text)
  return text
}

/**
 * Figures of a bench, kept where scripts/benchmarks.mjs makes docs/benchmarks.md of them. Every bench that imports this
 * takes `--results FILE`: its figures are put into that file, each with the commit, the day and the machine that it was
 * measured on; what the file holds of other figures stays, so that a run of one part loses nothing.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'

const at = process.argv.indexOf('--results')
const file = at > 0 ? process.argv.splice(at, 2)[1] : undefined

const git = (...words) => execFileSync('git', words, { encoding: 'utf8' }).trim()

function commit() {
  try {
    const isChanged =
      git('status', '--porcelain', '--', 'src', 'commands', 'bench', ':!bench/results') !== ''
    return git('rev-parse', '--short=7', 'HEAD') + (isChanged ? ' with changes' : '')
  } catch {
    return 'unknown'
  }
}

/** What a figure was measured on. */
export const measuredOn = () => ({
  commit: commit(),
  date: new Date().toISOString().slice(0, 10),
  machine: `${availableParallelism()} cores, ${cpus()[0]?.model.trim() ?? 'unknown'}, Node ${process.versions.node}`,
})

/** One figure into a file of figures. Of the same `what` there is one. */
export function putFigure(path, figure) {
  const kept = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { figures: [] }
  const figures = kept.figures.slice()
  const place = figures.findIndex(({ what }) => what === figure.what)
  if (place < 0) figures.push(figure)
  else figures[place] = figure
  writeFileSync(path, `${JSON.stringify({ ...kept, figures }, undefined, 1)}\n`)
}

/**
 * One figure: `what` names it, `ours` and `peer` are texts, `ratio` and `target` too (`≥ 1.3`), `holds` says whether it is reached.
 * Without --results nothing happens.
 */
export function keepFigure(figure) {
  if (file !== undefined) putFigure(file, { ...figure, ...measuredOn() })
}

/** A ratio that must be at least, or with `isLow` at most, its target. */
export const keepRatio = ({ ratio, target, isLow = false, ...figure }) =>
  keepFigure({
    ...figure,
    ratio: ratio.toFixed(2),
    target: `${isLow ? '≤' : '≥'} ${target}`,
    holds: isLow ? ratio <= target : ratio >= target,
  })

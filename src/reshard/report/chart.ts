/** Charts as SVG text, without scripts: one line over time with its waits shaded, and bars of steps. Pure. */

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

const WIDTH = 720
const HEIGHT = 150
const LEFT = 78
const BOTTOM = 22
const TOP = 8

export interface LineChart {
  readonly title: string
  /** Milliseconds since the epoch, rising; one for each value. */
  readonly times: readonly number[]
  readonly values: readonly number[]
  readonly format: (value: number) => string
  /** From and to of times in which the copy waited. */
  readonly shaded?: readonly (readonly [number, number])[]
}

const place = (value: number): string => value.toFixed(1)

/** Clock time of an instant, UTC. */
const clockTime = (ms: number): string => new Date(ms).toISOString().slice(11, 19)

export function lineChart(chart: LineChart): string {
  const { times, values, title, format } = chart
  if (times.length === 0) return ''
  const [from, to] = [
    times[0] as number,
    Math.max(times.at(-1) as number, (times[0] as number) + 1),
  ]
  const top = niceTop(Math.max(...values))
  const x = (time: number): number => LEFT + ((time - from) / (to - from)) * (WIDTH - LEFT - 8)
  const y = (value: number): number => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM)
  const points = times.map((time, i) => `${place(x(time))},${place(y(values[i] ?? 0))}`)
  const shades = (chart.shaded ?? []).map(
    ([start, end]) =>
      `<rect class="wait" x="${place(x(start))}" y="${TOP}" width="${place(Math.max(x(end) - x(start), 1))}" height="${HEIGHT - TOP - BOTTOM}"/>`,
  )
  const rules = [0, 0.5, 1].map((share) => {
    const at = place(y(top * share))
    return `<line class="rule" x1="${LEFT}" x2="${WIDTH - 8}" y1="${at}" y2="${at}"/><text x="${LEFT - 6}" y="${place(y(top * share) + 4)}" text-anchor="end">${escapeHtml(format(top * share))}</text>`
  })
  const ends = `<text x="${LEFT}" y="${HEIGHT - 4}">${clockTime(from)}</text><text x="${WIDTH - 8}" y="${HEIGHT - 4}" text-anchor="end">${clockTime(to)}</text>`
  const greatest = escapeHtml(format(Math.max(...values)))
  const line =
    points.length === 1
      ? `<circle class="dot" cx="${points[0]?.split(',')[0]}" cy="${points[0]?.split(',')[1]}" r="3"/>`
      : `<polyline class="line" points="${points.join(' ')}"/>`
  return figure(title, `at most ${greatest}`, HEIGHT, [...shades, ...rules, line, ends].join(''))
}

/** Steps one after the other, each as long as it took. */
export function stepChart(
  title: string,
  steps: readonly { readonly step: string; readonly ms: number }[],
): string {
  const total = steps.reduce((sum, { ms }) => sum + ms, 0)
  if (total <= 0) return ''
  const row = 20
  const left = 190
  const scale = (ms: number): number => (ms / total) * (WIDTH - left - 90)
  let done = 0
  const bars = steps.map(({ step, ms }, i) => {
    const [x, y] = [left + scale(done), i * row + 4]
    done += ms
    const width = Math.max(scale(ms), 1)
    return `<text x="${left - 8}" y="${y + 11}" text-anchor="end">${escapeHtml(step)}</text><rect class="bar" x="${place(x)}" y="${y}" width="${place(width)}" height="14"/><text x="${place(x + width + 5)}" y="${y + 11}">${ms.toFixed(1)} ms</text>`
  })
  return figure(title, `${total.toFixed(1)} ms in all`, steps.length * row + 8, bars.join(''))
}

function figure(title: string, note: string, height: number, body: string): string {
  const name = escapeHtml(title)
  return `<figure><figcaption>${name} <small>${note}</small></figcaption><svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${name}">${body}</svg></figure>`
}

/** 1, 2 or 5 times a power of ten at or above. */
function niceTop(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  const factor = [1, 2, 5, 10].find((one) => one * power >= value) ?? 10
  return factor * power
}

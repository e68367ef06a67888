/** Charts of the web page and of the reports, drawn from specs (../chart-spec.ts). The one place that knows uPlot. Runs in browsers. */
import { formatAs, formatClock, formatMs, formatNumber } from './format.js'

const SVG = 'http://www.w3.org/2000/svg'
const HEIGHT = 180
/** Colours --s0 … --s7 of theme.css. */
const COLOURS = 8

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value))
  made.append(...children)
  return made
}

const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** Beyond the colours there are, lines are dashed. */
const dashOf = (index) => (index < COLOURS ? undefined : [6, 4])

const seriesColour = (index) => () => colourOf(`--s${index % COLOURS}`)

const axis = (values, size) => ({
  stroke: () => colourOf('--dim'),
  grid: { stroke: () => colourOf('--rule'), width: 1 },
  ticks: { show: false },
  font: '11px system-ui, sans-serif',
  ...(values ? { values } : {}),
  ...(size ? { size } : {}),
})

/** Draws behind the lines, so that a shaded span does not hide them. */
function shadePlugin(spansOf) {
  const draw = (plot) => {
    const { ctx, bbox } = plot
    ctx.save()
    ctx.fillStyle = colourOf('--shade')
    for (const { from, to } of spansOf()) {
      const left = Math.max(plot.valToPos(from, 'x', true), bbox.left)
      const right = Math.min(plot.valToPos(to, 'x', true), bbox.left + bbox.width)
      if (right >= left) ctx.fillRect(left, bbox.top, Math.max(right - left, 2), bbox.height)
    }
    ctx.restore()
  }
  return { hooks: { drawClear: draw } }
}

const known = (values) => values.filter((value) => value !== null && Number.isFinite(value))

/** One sentence, for those who do not see the lines. */
function inWords({ unit, series }) {
  const parts = series.map(({ label, values }) => {
    const seen = known(values)
    if (seen.length === 0) return `${label}: nothing yet`
    const of = (value) => formatAs(unit, value)
    return `${label}: now ${of(seen.at(-1))}, at most ${of(Math.max(...seen))}`
  })
  return parts.length === 0 ? 'nothing yet' : parts.join('; ')
}

function lineOptions(spec, width, hooks, state) {
  const inSeconds = (_, ticks) =>
    ticks.map((tick) => (spec.isClock ? formatClock(tick) : `${formatNumber(tick)} s`))
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: true, y: false } },
    scales: {
      x: { time: false },
      y: { range: (_, _low, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      { ...axis(inSeconds, 26), space: 80 },
      axis((_, ticks) => ticks.map((tick) => formatAs(spec.unit, tick)), 68),
    ],
    series: [
      {},
      ...spec.series.map(({ label }, index) => ({
        label,
        stroke: seriesColour(index),
        width: 1.5,
        dash: dashOf(index),
        points: { show: spec.times.length < 2 },
        spanGaps: false,
      })),
    ],
    plugins: [shadePlugin(() => state.spec.shaded ?? [])],
    hooks,
  }
}

function swatch(index) {
  const line = shape('line', { x1: 0, x2: 16, y1: 4, y2: 4, class: `stroke s${index % COLOURS}` })
  if (dashOf(index)) line.setAttribute('stroke-dasharray', '4 3')
  return shape('svg', { width: 16, height: 8, 'aria-hidden': 'true' }, line)
}

/** Names and values of the lines: at the cursor, or the last ones. */
function fillLegend(legend, { unit, series, times, isClock }, at) {
  const index = at ?? times.length - 1
  const items = series.map(({ label, values }, i) =>
    element('li', {}, swatch(i), ` ${label} `, element('b', {}, formatAs(unit, values[index]))),
  )
  const time = times[index]
  if (at !== undefined && time !== undefined)
    items.unshift(element('li', {}, isClock ? formatClock(time) : `${formatNumber(time)} s`))
  legend.replaceChildren(...items)
}

const dataOf = ({ times, series }) => [times, ...series.map(({ values }) => values)]
const namesOf = ({ series }) => JSON.stringify(series.map(({ label }) => label))

/** Lines over time in `place`, which `update` draws anew with other data. */
function lineChart(place, first) {
  const state = { spec: first, plot: undefined, names: undefined, at: undefined }
  const legend = element('ul', { class: 'legend' })
  const plotPlace = element('div', { class: 'plot', role: 'img' })
  const figure = figureOf(first, legend, plotPlace)
  place.replaceChildren(figure)
  const width = () => Math.max(plotPlace.clientWidth, 160)
  const onCursor = (plot) => {
    const at = plot.cursor.idx ?? undefined
    if (at === state.at) return
    state.at = at
    fillLegend(legend, state.spec, at)
  }
  const draw = () => {
    const { spec } = state
    plotPlace.setAttribute('aria-label', `${spec.title}. ${inWords(spec)}`)
    if (state.names !== namesOf(spec)) {
      state.plot?.destroy()
      state.names = namesOf(spec)
      const options = lineOptions(spec, width(), { setCursor: [onCursor] }, state)
      state.plot = new globalThis.uPlot(options, dataOf(spec), plotPlace)
    } else state.plot.setData(dataOf(spec))
    fillLegend(legend, spec, state.at)
  }
  draw()
  new ResizeObserver(() => {
    const wanted = width()
    if (state.plot.width !== wanted) state.plot.setSize({ width: wanted, height: HEIGHT })
  }).observe(plotPlace)
  onScheme(() => state.plot.redraw(false))
  return {
    update(spec) {
      state.spec = spec
      // not shown: it is drawn when it is
      if (plotPlace.clientWidth > 0) draw()
    },
  }
}

/** The colours are read when something is drawn. */
const onScheme = (then) =>
  globalThis.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', then)

function figureOf({ title, note, shaded }, ...parts) {
  const words = [...new Set((shaded ?? []).map(({ label }) => label))]
  const notes = [note, words.length > 0 ? `Shaded: ${words.join(', ')}.` : undefined]
  const caption = element('figcaption', {}, title)
  return element(
    'figure',
    {},
    caption,
    ...parts,
    ...notes.filter(Boolean).map((text) => element('p', { class: 'note' }, text)),
  )
}

function svgOf(title, words, width, height, children) {
  return shape(
    'svg',
    {
      viewBox: `0 0 ${width} ${height}`,
      role: 'img',
      'aria-label': `${title}. ${words}`,
      class: 'drawn',
    },
    ...children,
  )
}

const WIDE = 720
const NAMES = 190
/** Places less wide than this get bars of their own width. */
const NARROW = 500
const ROW = 24

const label = (x, y, text, anchor = 'start') => shape('text', { x, y, 'text-anchor': anchor }, text)

/** A long name keeps its end, which tells hosts and ports apart. */
const fitted = (text, length = 28) => (text.length <= length ? text : `…${text.slice(1 - length)}`)

function barChart(place, spec) {
  const { bars, unit, title } = spec
  const most = Math.max(...bars.flatMap(({ value, expected }) => [value, expected ?? 0]), 1e-9)
  const isNarrow = place.clientWidth > 0 && place.clientWidth < NARROW
  // drawn smaller than it is, the text of a small screen could not be read
  const wide = isNarrow ? Math.max(place.clientWidth, 300) : WIDE
  const [names, letters] = isNarrow ? [100, 15] : [NAMES, 28]
  const scale = (value) => (value / most) * (wide - names - 110)
  const rows = bars.flatMap(({ label: name, value, expected }, i) => {
    const y = i * ROW + 4
    const mark = names + scale(expected ?? 0)
    const words = `${formatAs(unit, value)}${expected === undefined ? '' : ` of ${formatAs(unit, expected)}`}`
    return [
      label(names - 8, y + 12, fitted(name, letters), 'end'),
      shape('rect', { x: names, y, width: Math.max(scale(value), 1), height: 16, class: 'bar' }),
      ...(expected === undefined
        ? []
        : [shape('line', { x1: mark, x2: mark, y1: y - 3, y2: y + 19, class: 'mark' })]),
      label(names + Math.max(scale(value), scale(expected ?? 0)) + 8, y + 12, words),
    ]
  })
  const words = bars.map(
    ({ label: name, value, expected }) =>
      `${name}: ${formatAs(unit, value)}${expected === undefined ? '' : `, expected ${formatAs(unit, expected)}`}`,
  )
  const drawn = svgOf(title, words.join('; '), wide, bars.length * ROW + 6, rows)
  place.replaceChildren(figureOf(spec, drawn))
}

function stepChart(place, spec) {
  const { steps, title } = spec
  const total = steps.reduce((sum, { ms }) => sum + ms, 0)
  const scale = (ms) => (total === 0 ? 0 : (ms / total) * (WIDE - NAMES - 90))
  let done = 0
  const rows = steps.flatMap(({ label: name, ms }, i) => {
    const [x, y] = [NAMES + scale(done), i * ROW + 4]
    done += ms
    const width = Math.max(scale(ms), 1)
    return [
      label(NAMES - 8, y + 12, fitted(name), 'end'),
      shape('rect', { x, y, width, height: 16, class: 'bar' }),
      label(x + width + 6, y + 12, formatMs(ms)),
    ]
  })
  const words = `${formatMs(total)} if one after the other, some ran side by side: ${steps.map(({ label: name, ms }) => `${name} ${formatMs(ms)}`).join(', ')}`
  const drawn = svgOf(title, words, WIDE, steps.length * ROW + 6, rows)
  const note = spec.note ?? `${formatMs(total)} one after the other; some ran side by side.`
  place.replaceChildren(figureOf({ ...spec, note }, drawn))
}

const TALL = 170
const LEFT = 56

/** 1, 2 and 5 times the powers of ten within. */
function logMarks(low, high) {
  const marks = []
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10)
    for (const mark of [power, 2 * power, 5 * power])
      if (mark >= low && mark <= high) marks.push(mark)
  const every = Math.ceil(marks.length / 9)
  return marks.filter((_, i) => i % every === 0)
}

function histogram(place, spec) {
  const { spans, title } = spec
  const low = spans[0].from > 0 ? spans[0].from : spans[0].to / 2
  const high = Math.max(spans.at(-1).to, low * 1.5)
  const most = Math.max(...spans.map(({ count }) => count))
  const all = spans.reduce((sum, { count }) => sum + count, 0)
  const x = (ms) =>
    LEFT + (Math.log(Math.max(ms, low) / low) / Math.log(high / low)) * (WIDE - LEFT - 30)
  const bars = spans.map(({ from, to, count }) => {
    const height = (count / most) * (TALL - 34)
    const size = { width: Math.max(x(to) - x(from) - 0.5, 1), height, class: 'bar' }
    const name = `${formatMs(from)} to ${formatMs(to)}: ${formatNumber(count)}`
    return shape('rect', { x: x(from), y: TALL - 24 - height, ...size }, shape('title', {}, name))
  })
  const marks = logMarks(low, high).map((mark) =>
    label(x(mark), TALL - 8, formatMs(mark), 'middle'),
  )
  const top = label(LEFT - 6, 18, formatNumber(most), 'end')
  const base = { x1: LEFT, x2: WIDE - 10, y1: TALL - 24, y2: TALL - 24, class: 'rule' }
  const peak = spans.find(({ count }) => count === most)
  const words = `${formatNumber(all)} in all, most of them between ${formatMs(peak.from)} and ${formatMs(peak.to)}`
  const drawn = svgOf(title, words, WIDE, TALL, [...bars, shape('line', base), top, ...marks])
  place.replaceChildren(figureOf(spec, drawn))
}

const drawers = { bars: barChart, steps: stepChart, histogram }

/** Draws `spec` into `place`; the result draws it again when the data is another. */
export function drawChart(place, spec) {
  if (spec.kind === 'lines') return lineChart(place, spec)
  const draw = drawers[spec.kind]
  draw(place, spec)
  return { update: (next) => draw(place, next) }
}

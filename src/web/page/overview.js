/** The first view: figures of now, and what they were over time. Runs in browsers. */
import { drawChart, element } from './charts.js'
import { formatAs, formatCount } from './format.js'

const byId = (id) => document.getElementById(id)
/** A longer silence is drawn as one. */
const SILENT_S = 12

const isOverShards = (name) => name.endsWith('over shards')

/** Shards keep their colours in all charts: what concerns several of them comes last. */
function namesIn(points, group) {
  const names = new Set(points.flatMap((point) => (point ? Object.keys(point[group]) : [])))
  const place = (name) => Number(isOverShards(name))
  return [...names].sort(
    (a, b) => place(a) - place(b) || a.localeCompare(b, 'en', { numeric: true }),
  )
}

export class Overview {
  #points = []
  #charts = new Map()
  #group = byId('group')
  #span = byId('span')
  #board

  constructor() {
    for (const choice of [this.#group, this.#span])
      choice.addEventListener('change', () => this.draw())
  }

  take({ points, isWhole, board }) {
    this.#points = isWhole ? [...points] : [...this.#points, ...points]
    const oldest = (this.#points.at(-1)?.at ?? 0) - 900
    while (this.#points.length > 0 && this.#points[0].at < oldest) this.#points.shift()
    this.#board = board
  }

  draw() {
    const points = this.#shown()
    this.#figures(this.#points.at(-1))
    this.#lines('tps', 'Transactions a second', 'rate', points, 0)
    this.#lines('p50', 'Latency, median', 'ms', points, 2)
    this.#lines('p99', 'Latency, 99th percentile', 'ms', points, 3)
    const count = (label, of) => ({ label, values: points.map((one) => (one ? of(one) : null)) })
    this.#chart('clients', {
      ...this.#frame('Clients', 'count', points),
      series: [
        count('connected', ({ clients }) => clients),
        count('active', ({ active }) => active),
        count('waiting for a server', ({ waiting }) => waiting),
      ],
    })
    this.#chart('errors', {
      ...this.#frame('Errors a second', 'rate', points),
      series: [count('errors', ({ errors }) => errors)],
    })
    this.#share()
  }

  /** Points of the span; null where nothing was seen for long. */
  #shown() {
    const newest = this.#points.at(-1)?.at ?? 0
    const points = this.#points.filter(({ at }) => at >= newest - Number(this.#span.value))
    return points.flatMap((point, i) => {
      const before = points[i - 1]
      return before && point.at - before.at > SILENT_S ? [null, point] : [point]
    })
  }

  #frame(title, unit, points) {
    const times = points.map((point, i) => point?.at ?? (points[i - 1]?.at ?? 0) + 1)
    return { kind: 'lines', title, unit, times, isClock: true }
  }

  /** One line a shard or pool, or one for all. */
  #lines(name, title, unit, points, place) {
    const group = this.#group.value
    const names = group === 'all' ? ['all'] : namesIn(points, group)
    const of = (point, label) => (group === 'all' ? point.all : point[group][label])
    // whole transactions over shards are counted on each of them
    const drawn = place === 0 ? names.filter((name) => !isOverShards(name)) : names
    const series = drawn.map((label) => ({
      label,
      values: points.map((point) => (point ? (of(point, label)?.[place] ?? null) : null)),
    }))
    this.#chart(name, { ...this.#frame(title, unit, points), series })
  }

  #chart(name, spec) {
    const known = this.#charts.get(name)
    if (known) known.update(spec)
    else this.#charts.set(name, drawChart(byId(`chart-${name}`), spec))
  }

  #figures(point) {
    if (!point) return
    const [tps, qps, p50, p99] = point.all
    const servers = this.#board.pools.reduce((sum, pool) => sum + pool.inUse, 0)
    const most = this.#board.pools.reduce((sum, pool) => sum + pool.maxSize, 0)
    const figures = [
      ['Transactions', formatAs('rate', tps)],
      ['Queries', formatAs('rate', qps)],
      ['Median', formatAs('ms', p50)],
      ['99th percentile', formatAs('ms', p99)],
      ['Clients', formatCount(point.clients)],
      ['Active', formatCount(point.active)],
      ['Waiting', formatCount(point.waiting)],
      ['Servers in use', `${formatCount(servers)} of ${formatCount(most)}`],
      ['Errors', formatAs('rate', point.errors)],
    ]
    const place = byId('figures')
    for (const [i, [name, value]] of figures.entries()) {
      const known = place.children[i]
      if (!known)
        place.append(element('div', {}, element('dt', {}, name), element('dd', {}, value)))
      else if (known.lastChild.textContent !== value) known.lastChild.textContent = value
    }
  }

  #share() {
    const shards = new Map()
    for (const { database, shard, share } of this.#board.hosts)
      shards.set(`${database} shard ${shard}`, { database, share })
    const counts = new Map()
    for (const { database } of shards.values())
      counts.set(database, (counts.get(database) ?? 0) + 1)
    const bars = [...shards].map(([label, { database, share }]) => ({
      label,
      value: (share ?? 0) * 100,
      expected: 100 / counts.get(database),
    }))
    this.#chart('share', {
      kind: 'bars',
      title: 'Load of each shard, queries',
      unit: 'percent',
      bars: bars.slice(0, 24),
      note: 'The mark is an even share.',
    })
  }
}

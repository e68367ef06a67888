/** The views that are tables. Runs in browsers. */
import { drawChart, element } from './charts.js'
import {
  formatBytes,
  formatClock,
  formatCount,
  formatMs,
  formatNumber,
  formatSpan,
} from './format.js'
import { LiveTable } from './table.js'

const words = (name, value, more = {}) => ({ name, value, ...more })
const count = (name, value) => ({
  name,
  value,
  text: (row) => formatCount(value(row)),
  isNumber: true,
})
const time = (name, value) => ({
  name,
  value,
  text: (row) => (value(row) === null ? '–' : formatMs(value(row))),
  isNumber: true,
})
const span = (name, value) => ({
  name,
  value,
  text: (row) => formatSpan(value(row)),
  isNumber: true,
})
const size = (name, value) => ({
  name,
  value,
  text: (row) => (value(row) === null ? '–' : formatBytes(value(row))),
  isNumber: true,
})

const hostState = (host) => {
  if (host.isPaused) return 'paused'
  if (host.banReason !== undefined) return 'banned'
  return host.isHealthy ? 'healthy' : 'cannot be reached'
}
const hostTone = (host) => ({ healthy: 'good', paused: 'warn' })[hostState(host)] ?? 'bad'

const banWords = ({ banReason, banLeftMs }) => {
  if (banReason === undefined) return ''
  return banLeftMs === null
    ? `${banReason}, until UNBAN`
    : `${banReason}, ${formatSpan(banLeftMs)} left`
}

const hosts = {
  name: 'Hosts of each shard',
  empty: 'There is no pool yet: pools are made when the first client comes.',
  keyOf: ({ database, shard, address }) => `${database} ${shard} ${address}`,
  columns: [
    words('Host', ({ address }) => address),
    words('Database', ({ database }) => database),
    count('Shard', ({ shard }) => shard),
    words('Role', ({ role }) => role),
    words('State', hostState, { tone: hostTone }),
    words('Ban', banWords),
    {
      name: 'Load',
      value: ({ share }) => share,
      text: ({ share }) => (share === null ? '–' : `${formatNumber(share * 100)} %`),
      isNumber: true,
    },
    count('Servers', ({ servers }) => servers),
    count('In use', ({ inUse }) => inUse),
    count('Waiting', ({ waiting }) => waiting),
    count('Queries', ({ queries }) => queries),
    time('Lag', ({ lagMs }) => lagMs),
    size('Lag bytes', ({ lagBytes }) => lagBytes),
    words('LSN', ({ lsn }) => lsn ?? ''),
  ],
}

const poolTones = { healthy: 'good', paused: 'warn', offline: 'warn' }

const pools = {
  name: 'Pools, workers together',
  empty: 'There is no pool yet.',
  keyOf: ({ key }) => key,
  columns: [
    words('Pool', ({ user, database }) => `${user}@${database}`),
    count('Shard', ({ shard }) => shard),
    words('Role', ({ role }) => role),
    words('Host', ({ address }) => address),
    words('State', ({ state }) => state, { tone: ({ state }) => poolTones[state] ?? 'bad' }),
    words('Mode', ({ mode }) => mode),
    count('Waiting', ({ waiting }) => waiting),
    time('Longest wait', ({ maxWaitMs }) => maxWaitMs),
    count('In use', ({ inUse }) => inUse),
    count('Idle', ({ idle }) => idle),
    count('In transaction', ({ idleInTransaction }) => idleInTransaction),
    count('Opening', ({ opening }) => opening),
    {
      name: 'Size',
      value: ({ maxSize }) => maxSize,
      text: ({ minSize, maxSize }) => `${minSize} to ${maxSize}`,
      isNumber: true,
    },
    time('Wait p99', ({ waitP99Ms }) => waitP99Ms),
    time('Connect p99', ({ connectP99Ms }) => connectP99Ms),
  ],
}

const clientTones = { waiting: 'warn', active: 'good', 'idle in transaction': 'warn' }

const clients = {
  name: 'Clients: those that wait first',
  empty: 'Nobody is connected.',
  keyOf: ({ worker, id }) => `${worker} ${id}`,
  columns: [
    words('Client', ({ user, database }) => `${user}@${database}`),
    words('State', ({ state }) => state, { tone: ({ state }) => clientTones[state] }),
    words('Waits for', ({ waitsFor }) => waitsFor, { isWide: true }),
    words('Keeps its server for', ({ pins }) => pins),
    span('Since its last request', ({ quietMs }) => quietMs),
    words('Application', ({ applicationName }) => applicationName),
    words('Address', ({ address }) => address),
    count('Transactions', ({ transactions }) => transactions),
    count('Errors', ({ errors }) => errors),
    count('Prepared', ({ preparedStatements }) => preparedStatements),
    span('Connected', ({ connectedMs }) => connectedMs),
    count('Id', ({ id }) => id),
    count('Worker', ({ worker }) => worker),
  ],
}

const statements = {
  name: 'Statements without their literals, by the time that they took',
  empty: 'No statement has run yet.',
  keyOf: ({ database, text }) => `${database} ${text}`,
  columns: [
    words('Statement', ({ text }) => text, { isWide: true, isCode: true }),
    words('Database', ({ database }) => database),
    words('How', ({ how }) => how, {
      tone: ({ isScattered }) => (isScattered ? 'warn' : undefined),
    }),
    {
      name: 'Shards',
      value: ({ shards }) => shards,
      text: ({ shards }) => formatNumber(shards),
      isNumber: true,
    },
    count('Count', (row) => row.count),
    time('Mean', ({ meanMs }) => meanMs),
    time('Longest', ({ maxMs }) => maxMs),
    time('Time in all', ({ totalMs }) => totalMs),
    count('Errors', ({ errors }) => errors),
  ],
}

const transactions = {
  name: 'Prepared transactions, and users who may not write on several shards',
  empty: 'Nothing is prepared, and every user may write on several shards.',
  keyOf: ({ database, user, name }) => `${database} ${user} ${name}`,
  columns: [
    words('Transaction', ({ name }) => name || '–'),
    words('State', ({ state }) => state, {
      tone: ({ state }) => (state === 'unavailable' ? 'warn' : undefined),
    }),
    words('Database', ({ database }) => database),
    words('User', ({ user }) => user),
    words('Shard', ({ shard }) => shard ?? '–'),
    {
      name: 'Age',
      value: ({ ageMs }) => ageMs ?? null,
      text: ({ ageMs }) => (ageMs === undefined ? '–' : formatSpan(ageMs)),
      isNumber: true,
    },
    words('Why', ({ reason }) => reason, { isWide: true }),
  ],
}

const workerTones = { ready: 'good', draining: 'warn', starting: 'warn' }

const workers = {
  name: 'Processes of this proxy',
  empty: 'No worker answers.',
  keyOf: ({ worker }) => String(worker),
  columns: [
    count('Worker', ({ worker }) => worker),
    words('State', ({ state }) => state, { tone: ({ state }) => workerTones[state] ?? 'bad' }),
    count('Process', ({ processId }) => processId),
    span('Up', ({ uptimeMs }) => uptimeMs),
    count('Replaced', ({ replaced }) => replaced),
    count('Clients', (row) => row.clients),
    words('May have', ({ maxClients }) => (maxClients === null ? 'any' : formatCount(maxClients))),
    count('Cancels', ({ cancels }) => cancels),
    span('CPU', ({ cpuMs }) => cpuMs),
    size('Memory', ({ memoryBytes }) => memoryBytes),
  ],
}

const copies = {
  name: 'Tables',
  empty: 'No table has been copied yet.',
  keyOf: ({ schema, table }) => `${schema}.${table}`,
  columns: [
    words('Table', ({ schema, table }) => `${schema}.${table}`),
    words('State', ({ state }) => state, {
      tone: ({ state }) => ({ verified: 'good', different: 'bad' })[state],
    }),
    count('Rows', ({ rows }) => rows),
    size('Copied', ({ bytes }) => bytes),
    size('On disk', ({ totalBytes }) => totalBytes),
  ],
}

const moveTones = { failed: 'bad', paused: 'warn', cut_over: 'good', cleaned: 'good' }

/** The moves between databases, newest first, each with its tables and charts. */
class Moves {
  #place
  #known = new Map()
  #empty = element('p', { class: 'empty' }, 'There was no move.')

  constructor(place) {
    this.#place = place
    place.append(this.#empty)
  }

  update({ tasks, copies: tables, slots } = { tasks: [], copies: [], slots: [] }) {
    this.#empty.hidden = tasks.length > 0
    const seen = new Map()
    for (const task of tasks) {
      const move = this.#known.get(task.id) ?? this.#make(task)
      this.#fill(move, task, slots)
      move.table.update(tables.filter((one) => one.task === task.id))
      seen.set(task.id, move)
    }
    for (const [id, { section }] of this.#known) if (!seen.has(id)) section.remove()
    this.#known = seen
    for (const { section } of [...seen.values()].reverse())
      if (section.parentElement !== this.#place) this.#place.prepend(section)
  }

  #make({ id, from, to }) {
    const heading = element('h2', {}, `${from} to ${to}`)
    const facts = element('dl', { class: 'figures' })
    const error = element('pre', { class: 'bad', hidden: '' })
    const charts = element('div', { class: 'charts' })
    const section = element(
      'section',
      { class: 'move', 'aria-label': `Move ${id}` },
      heading,
      facts,
      error,
    )
    const table = new LiveTable(section, copies)
    section.append(charts)
    return { section, facts, error, table, charts, drawn: new Map() }
  }

  #fill({ facts, error, charts, drawn }, task, slots) {
    const lag = Math.max(
      0,
      ...slots.filter((one) => one.task === task.id).map((one) => one.lagBytes),
    )
    const known = [
      ['State', task.state],
      ['Step', task.step || '–'],
      ['Run', task.id],
      ['Begun', formatClock(task.startedAtMs / 1000)],
      ['Last seen', formatClock(task.updatedAtMs / 1000)],
      ['Behind', slots.some((one) => one.task === task.id) ? formatBytes(lag) : 'no slot'],
      ...(task.pauseMs === undefined ? [] : [['Write pause', formatMs(task.pauseMs)]]),
    ]
    facts.replaceChildren(
      ...known.map(([name, value]) =>
        element(
          'div',
          {},
          element('dt', {}, name),
          element('dd', { class: name === 'State' ? (moveTones[task.state] ?? '') : '' }, value),
        ),
      ),
    )
    error.hidden = task.error === null
    if (error.textContent !== (task.error ?? '')) error.textContent = task.error ?? ''
    for (const [name, spec] of Object.entries(task.charts ?? {})) {
      const chart = drawn.get(name)
      if (chart) chart.update(spec)
      else {
        const place = element('div')
        charts.append(place)
        drawn.set(name, drawChart(place, spec))
      }
    }
  }
}

/** Each view by its name, made when it is first shown. */
export class Panels {
  #tables = new Map()
  #scatteredOnly

  update(name, { board, moves }) {
    if (name === 'moves') return this.#of(name, (place) => new Moves(place)).update(moves)
    const spec = { hosts, pools, clients, statements, transactions, workers }[name]
    const table = this.#of(name, (place) => this.#make(name, place, spec))
    const rows = board[name]
    table.update(
      this.#scatteredOnly?.checked && name === 'statements'
        ? rows.filter((one) => one.isScattered)
        : rows,
    )
    const note = document.getElementById(`note-${name}`)
    const all = board.counts[name]
    if (note)
      note.textContent =
        all > rows.length ? `The first ${formatCount(rows.length)} of ${formatCount(all)}.` : ''
  }

  #make(name, place, spec) {
    if (name === 'statements') {
      this.#scatteredOnly = element('input', { type: 'checkbox', id: 'scattered' })
      const label = element(
        'label',
        { for: 'scattered' },
        ' only those that several shards work for',
      )
      place.append(
        element('div', { class: 'controls' }, element('span', {}, this.#scatteredOnly, label)),
      )
    }
    const table = new LiveTable(place, spec)
    place.append(element('p', { class: 'note', id: `note-${name}` }))
    return table
  }

  #of(name, make) {
    const known = this.#tables.get(name) ?? make(document.getElementById(`panel-${name}`))
    this.#tables.set(name, known)
    return known
  }
}

/** The page: hears what the proxy tells once a second and shows the view that is chosen. Runs in browsers. */
import { element } from './charts.js'
import { formatClock, formatCount, formatSpan } from './format.js'
import { Overview } from './overview.js'
import { Panels } from './panels.js'

const byId = (id) => document.getElementById(id)
const tabs = [...document.querySelectorAll('[role="tab"]')]
const nameOf = (tab) => tab.id.replace('tab-', '')
const overview = new Overview()
const panels = new Panels()
const LOST_MS = 5000

let chosen = tabs.find((tab) => `#${nameOf(tab)}` === location.hash) ?? tabs[0]
let latest
let heardAtMs = 0
let isHeld = false

// The token has done its work, and shall not stand in the address or the history.
if (location.search.includes('token=')) history.replaceState(null, '', `/${location.hash}`)

function show() {
  if (!latest) return
  const name = nameOf(chosen)
  if (name === 'overview') overview.draw()
  else panels.update(name, latest)
}

function choose(tab, isFocused) {
  chosen = tab
  for (const one of tabs) {
    const isChosen = one === tab
    one.setAttribute('aria-selected', String(isChosen))
    if (isChosen) one.removeAttribute('tabindex')
    else one.setAttribute('tabindex', '-1')
    byId(one.getAttribute('aria-controls')).hidden = !isChosen
  }
  if (isFocused) tab.focus()
  history.replaceState(null, '', `#${nameOf(tab)}`)
  show()
}

const steps = { ArrowRight: 1, ArrowLeft: -1 }

function onKey(event) {
  const at = tabs.indexOf(chosen)
  const ends = { Home: 0, End: tabs.length - 1 }
  const to =
    ends[event.key] ?? (steps[event.key] && (at + steps[event.key] + tabs.length) % tabs.length)
  if (to === undefined) return
  event.preventDefault()
  choose(tabs[to], true)
}

for (const tab of tabs) {
  tab.addEventListener('click', () => choose(tab, false))
  tab.addEventListener('keydown', onKey)
}

/** Told anew only when something changed: who listens would hear it every second. */
function showProblems(problems) {
  const place = byId('problems')
  const key = JSON.stringify(problems.map(({ what, sinceMs }) => [what, sinceMs]))
  if (place.dataset.key !== key) {
    place.dataset.key = key
    const items = problems.map(({ level, what, detail, sinceMs }) =>
      element(
        'li',
        { 'data-level': level },
        element('b', {}, `${what} since ${formatClock(sinceMs / 1000)}`),
        element('span', {}, `: ${detail}`),
      ),
    )
    place.replaceChildren(...(items.length > 0 ? [element('ul', {}, ...items)] : []))
  } else
    for (const [i, { detail }] of problems.entries()) {
      const words = place.querySelectorAll('li')[i].lastChild
      if (words.textContent !== `: ${detail}`) words.textContent = `: ${detail}`
    }
  document.title = problems.length > 0 ? `(${problems.length}) pgshard` : 'pgshard'
}

function showAbout({ version, uptimeMs, workers, counts }) {
  const many = workers.length === 1 ? '1 process' : `${workers.length} workers`
  const clients = counts.clients === 1 ? '1 client' : `${formatCount(counts.clients)} clients`
  byId('about').textContent = `${version}, up ${formatSpan(uptimeMs)}, ${many}, ${clients}`
}

function sayLive(state, text) {
  const live = byId('live')
  live.dataset.state = state
  if (live.textContent !== text) live.textContent = text
}

function hear(message) {
  heardAtMs = performance.now()
  overview.take(message)
  latest = { board: message.board, moves: message.moves ?? latest?.moves }
  document.body.dataset.heard = String(Number(document.body.dataset.heard ?? 0) + 1)
  if (isHeld) return
  sayLive('live', 'live')
  showProblems(message.board.problems)
  showAbout(message.board)
  show()
}

byId('hold').addEventListener('click', ({ currentTarget }) => {
  isHeld = !isHeld
  currentTarget.setAttribute('aria-pressed', String(isHeld))
  sayLive(isHeld ? 'held' : 'live', isHeld ? 'held' : 'live')
  if (!isHeld) show()
})

const events = new EventSource('/events')
events.addEventListener('message', ({ data }) => hear(JSON.parse(data)))
events.addEventListener('error', () => {
  // it connects again by itself, unless it was refused
  if (events.readyState === EventSource.CLOSED)
    sayLive('lost', 'the proxy was started again: open the page with its new token')
})
setInterval(() => {
  if (isHeld || heardAtMs === 0 || performance.now() - heardAtMs < LOST_MS) return
  if (events.readyState !== EventSource.CLOSED)
    sayLive('lost', `no answer for ${formatSpan(performance.now() - heardAtMs)}`)
}, 1000)
choose(chosen, false)

/** Tables whose rows change every second: cells that did not change are left alone, so that focus and selections stay. Runs in browsers. */
import { element } from './charts.js'

/**
 * `columns`: { name, value(row), text?(row), isNumber?, isWide?, tone?(row) }; the first names the row. `value` sorts, `text` is
 * shown. `keyOf(row)` tells rows apart.
 */
export class LiveTable {
  #columns
  #keyOf
  #rows = new Map()
  #body = element('tbody')
  #table = element('table')
  #empty = element('p', { class: 'empty' })
  #sort
  #data = []
  #heads = []

  constructor(place, { name, columns, keyOf, sort, empty }) {
    this.#columns = columns
    this.#keyOf = keyOf
    this.#sort = sort
    this.#empty.textContent = empty
    const head = element('tr', {}, ...columns.map((column, i) => this.#head(column, i)))
    this.#table.append(element('caption', {}, name), element('thead', {}, head), this.#body)
    const scroll = element(
      'div',
      { class: 'scroll', role: 'region', 'aria-label': name, tabindex: '0' },
      this.#table,
    )
    place.append(scroll, this.#empty)
    this.#showSort()
  }

  #head({ name, isNumber }, index) {
    const button = element('button', { type: 'button' }, name)
    button.addEventListener('click', () => {
      const isDown = this.#sort?.index === index ? !this.#sort.isDown : Boolean(isNumber)
      this.#sort = { index, isDown }
      this.#showSort()
      this.update(this.#data)
    })
    const head = element('th', { scope: 'col', class: isNumber ? 'n' : '' }, button)
    this.#heads.push(head)
    return head
  }

  #showSort() {
    for (const [i, head] of this.#heads.entries()) {
      if (i !== this.#sort?.index) head.removeAttribute('aria-sort')
      else head.setAttribute('aria-sort', this.#sort.isDown ? 'descending' : 'ascending')
    }
  }

  #sorted(data) {
    if (!this.#sort) return data
    const { value } = this.#columns[this.#sort.index]
    const sign = this.#sort.isDown ? -1 : 1
    return [...data].sort((a, b) => sign * compare(value(a), value(b)))
  }

  update(data) {
    this.#data = data
    const seen = new Map()
    for (const row of this.#sorted(data)) {
      const key = this.#keyOf(row)
      const line = this.#rows.get(key) ?? this.#line()
      this.#fill(line, row)
      seen.set(key, line)
    }
    this.#rows = seen
    const lines = [...seen.values()]
    const shown = [...this.#body.children]
    if (lines.length !== shown.length || lines.some((line, i) => line !== shown[i]))
      this.#body.replaceChildren(...lines)
    this.#table.parentElement.hidden = lines.length === 0
    this.#empty.hidden = lines.length > 0
  }

  #line() {
    const cells = this.#columns.map(({ isNumber, isWide }, i) =>
      i === 0
        ? element('th', { scope: 'row', class: isWide ? 'wrap' : '' })
        : element('td', { class: isNumber ? 'n' : isWide ? 'wrap' : '' }),
    )
    return element('tr', {}, ...cells)
  }

  #fill(line, row) {
    for (const [i, { value, text, tone, isNumber, isWide, isCode }] of this.#columns.entries()) {
      const cell = line.children[i]
      const words = String((text ?? value)(row) ?? '')
      if (cell.textContent !== words) cell.textContent = words
      const mood = tone?.(row)
      const classes = [isNumber ? 'n' : '', isWide ? 'wrap' : '', isCode ? 'statement' : '']
      const wanted = [...classes, mood ? `state-${mood}` : ''].filter(Boolean).join(' ')
      if (cell.className !== wanted) cell.className = wanted
    }
  }
}

function compare(a, b) {
  if (a === b) return 0
  if (a === null || a === undefined) return -1
  if (b === null || b === undefined) return 1
  return typeof a === 'number' && typeof b === 'number'
    ? a - b
    : String(a).localeCompare(String(b), 'en', { numeric: true })
}

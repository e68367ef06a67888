/**
 * How the demo speaks: numbered steps with what they found and how long they took, checks with a
 * mark, tables set in. Plain text where there is no terminal or no colour is wanted.
 */
import type { Clock } from '../base/clock.js'
import { formatDuration, painter, renderTable } from '../cli/render.js'
import { engineError } from '../errors/engine-error.js'

export interface StoryOutput {
  write(text: string): void
  /** A terminal: what is being done right now may be shown and wiped again. */
  isTerminal: boolean
  hasColor: boolean
  clock: Clock
}

const INDENT = '    '
const WIDTH = 78
const STATUS_EVERY_MS = 80

export type Cell = string | number

export class Story {
  readonly #output: StoryOutput
  readonly #paint: ReturnType<typeof painter>
  #step = 0
  #checks = 0
  #isStatusShown = false
  #statusMs = 0

  constructor(output: StoryOutput) {
    this.#output = output
    this.#paint = painter(output.hasColor)
  }

  get checks(): number {
    return this.#checks
  }

  title(text: string, under: string): void {
    this.#line(this.#paint('bold', text))
    this.#line(this.#paint('dim', under))
  }

  /** Runs one step under its number; its time is printed below it. */
  async step<T>(title: string, work: () => Promise<T>): Promise<T> {
    const { clock } = this.#output
    const begin = clock.monotonicMs()
    this.#step++
    this.#line('')
    this.#line(
      `${this.#paint('cyan', String(this.#step).padStart(2))}  ${this.#paint('bold', title)}`,
    )
    const result = await work()
    this.#line(this.#paint('dim', `${INDENT}${formatDuration(clock.monotonicMs() - begin)}`))
    return result
  }

  line(text: string): void {
    for (const line of text.split('\n')) this.#line(`${INDENT}${line}`)
  }

  /** Pairs, the second in a column of its own. */
  facts(pairs: readonly (readonly [string, string])[]): void {
    const width = Math.max(...pairs.map(([name]) => name.length))
    for (const [name, value] of pairs) this.line(`${name.padEnd(width)}  ${value}`)
  }

  table(header: readonly string[], rows: readonly (readonly Cell[])[]): void {
    this.line(renderTable(header, rows).trimEnd())
  }

  /** Something that had to hold, and does. @throws DEMO_CHECK when it does not */
  check(holds: boolean, what: string, found?: string): void {
    if (!holds)
      throw engineError('DEMO_CHECK', { what }, found === undefined ? {} : { detail: found })
    this.#checks++
    this.line(`${this.#paint('green', this.#output.isTerminal ? '✓' : 'ok:')} ${what}`)
  }

  /** What goes on right now; only on a terminal, and gone with the next line. */
  status(text: string): void {
    const now = this.#output.clock.monotonicMs()
    const isTooSoon = this.#isStatusShown && now - this.#statusMs < STATUS_EVERY_MS
    if (!this.#output.isTerminal || isTooSoon) return
    this.#isStatusShown = true
    this.#statusMs = now
    const shown = text.length > WIDTH ? `${text.slice(0, WIDTH - 1)}…` : text
    this.#output.write(`\r\u001b[K${INDENT}${this.#paint('dim', shown)}`)
  }

  /** A line at the margin. */
  plain(text: string): void {
    this.#line(text)
  }

  strong(text: string): string {
    return this.#paint('bold', text)
  }

  #line(text: string): void {
    const wipe = this.#isStatusShown ? '\r\u001b[K' : ''
    this.#isStatusShown = false
    this.#output.write(`${wipe}${text.trimEnd()}\n`)
  }
}

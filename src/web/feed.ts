/** Looks at the proxy at intervals, keeps what the charts need, and tells those who watch. */
import type { MovesView } from '../admin/move-control.js'
import type { ProxyView } from '../admin/proxy-view.js'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { type Board, makeBoard } from './board.js'
import { Problems } from './problems.js'
import { type Point, Rates } from './rates.js'

export interface FeedSources {
  readonly clock: Clock
  readonly log: Log
  look(): ProxyView | Promise<ProxyView>
  /** Asks databases: only while somebody watches. */
  moves(): Promise<MovesView>
}

/** What a page is told: all that is kept when it comes, then each new moment. */
export interface FeedMessage {
  readonly points: readonly Point[]
  readonly isWhole: boolean
  readonly board: Board
  /** Absent: as before. */
  readonly moves?: MovesView
}

export type Listener = (message: FeedMessage) => void

const WATCHED_MS = 1000
/** Nobody watches: the charts have a past all the same. */
const UNWATCHED_MS = 5000
const KEPT_MS = 900_000
const MOVES_MS = 3000

export class Feed {
  readonly #sources: FeedSources
  readonly #rates = new Rates()
  readonly #problems = new Problems()
  readonly #listeners = new Set<Listener>()
  #points: Point[] = []
  #board: Board | undefined
  #moves: MovesView | undefined
  #movesAtMs = Number.NEGATIVE_INFINITY
  #isReadingMoves = false
  #timer: { cancel(): void } | undefined
  #looking: Promise<void> | undefined
  #isStopped = false

  constructor(sources: FeedSources) {
    this.#sources = sources
  }

  start(): void {
    this.#next()
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#listeners.clear()
  }

  /** Everything that is known now. */
  async now(): Promise<FeedMessage> {
    await this.#look()
    return this.#whole(this.#board as Board)
  }

  /** The first message comes at once. The result ends it. */
  watch(listener: Listener): () => void {
    this.#listeners.add(listener)
    this.#readMoves()
    if (this.#board) listener(this.#whole(this.#board))
    this.#next()
    return () => void this.#listeners.delete(listener)
  }

  #whole(board: Board): FeedMessage {
    const moves = this.#moves
    return { points: this.#points, isWhole: true, board, ...(moves ? { moves } : {}) }
  }

  #next(): void {
    if (this.#isStopped) return
    this.#timer?.cancel()
    const delayMs = this.#listeners.size > 0 ? WATCHED_MS : UNWATCHED_MS
    this.#timer = this.#sources.clock.after(this.#board ? delayMs : 0, () => {
      void this.#look().then(() => this.#next())
    })
  }

  /** One look at a time: a page that asks meanwhile gets the one that is under way. */
  #look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #lookOnce(): Promise<void> {
    const { log } = this.#sources
    try {
      const view = await this.#sources.look()
      const isNew = this.#points.length === 0
      const point = this.#rates.next(view)
      this.#points.push(point)
      const oldest = point.at - KEPT_MS / 1000
      if ((this.#points[0]?.at ?? 0) < oldest)
        this.#points = this.#points.filter(({ at }) => at >= oldest)
      this.#board = makeBoard(
        view,
        this.#problems.look(view, moveProblems(this.#moves)),
        point.shards,
      )
      this.#readMoves()
      this.#tell(this.#board, isNew)
    } catch (error) {
      log.warn('the web page could not look at the proxy', { reason: String(error) })
    }
  }

  #tell(board: Board, isNew: boolean): void {
    const moves = this.#moves
    const message = isNew
      ? this.#whole(board)
      : { points: this.#points.slice(-1), isWhole: false, board, ...(moves ? { moves } : {}) }
    for (const listener of this.#listeners) listener(message)
  }

  /** Not waited for: databases that do not answer must not stop the page. */
  #readMoves(): void {
    const { clock, log } = this.#sources
    if (this.#listeners.size === 0 || this.#isReadingMoves) return
    if (clock.monotonicMs() - this.#movesAtMs < MOVES_MS) return
    this.#isReadingMoves = true
    void this.#sources
      .moves()
      .then(
        (moves) => {
          this.#moves = moves
        },
        (error) => log.debug('moves could not be read', { reason: String(error) }),
      )
      .finally(() => {
        this.#movesAtMs = clock.monotonicMs()
        this.#isReadingMoves = false
      })
  }
}

function moveProblems(moves: MovesView | undefined) {
  const latest = new Map<string, MovesView['tasks'][number]>()
  for (const task of moves?.tasks ?? []) {
    const pair = JSON.stringify([task.from, task.to])
    if (!latest.has(pair)) latest.set(pair, task)
  }
  return [...latest.values()]
    .filter(({ state }) => state === 'failed')
    .map(({ from, to, error }) => ({
      level: 'bad' as const,
      what: `The move of "${from}" to "${to}" has failed`,
      detail: error ?? 'no reason was kept',
    }))
}

/**
 * Whether one pool's host may be used: healthy or not, banned or not, when to check next. Only a good check lifts a
 * ban, and not before its time is over (D93–D98). Decides nothing about other hosts: `mayBan` is asked.
 */
import type { Clock } from '../base/clock.js'

export interface HealthSettings {
  /** Between checks of an idle server; 0 or Infinity: none. */
  readonly idleCheckIntervalMs: number
  readonly firstCheckDelayMs: number
  /** 0: never banned. */
  readonly banTimeoutMs: number
}

export interface Ban {
  readonly reason: string
  readonly isManual: boolean
  /** Of a replica that is too far behind: ends when it has caught up. */
  readonly isOfLag?: boolean
  /** Monotonic; a manual ban has no end. */
  readonly untilMs: number
}

export interface HealthOptions {
  readonly clock: Clock
  readonly settings: HealthSettings
  /** False when no other host could take over. */
  mayBan(): boolean
  /** Checks an idle server; with `open`, opens one when none is idle. undefined: nothing was there to check. */
  check(open: boolean): Promise<boolean | undefined>
  onBan(reason: string): void
  onLift(): void
}

const RETRY_MS = 333

export class Health {
  readonly #options: HealthOptions
  #isHealthy = true
  #ban: Ban | undefined
  #nextCheckMs: number
  #checking: Promise<void> | undefined
  #lastCheckAtMs: number | undefined

  constructor(options: HealthOptions) {
    this.#options = options
    const { firstCheckDelayMs } = options.settings
    this.#nextCheckMs = options.clock.monotonicMs() + firstCheckDelayMs
  }

  get isHealthy(): boolean {
    return this.#isHealthy
  }

  get ban(): Ban | undefined {
    return this.#ban
  }

  /** Milliseconds until the ban may be lifted; undefined when there is none, Infinity for a manual one. */
  get banLeftMs(): number | undefined {
    if (!this.#ban) return undefined
    return Math.max(0, this.#ban.untilMs - this.#options.clock.monotonicMs())
  }

  /** A server could not be opened, or failed its check. */
  failed(reason: string): void {
    this.#isHealthy = false
    const { banTimeoutMs } = this.#options.settings
    if (this.#ban || banTimeoutMs <= 0 || !this.#options.mayBan()) return
    this.#setBan({ reason, isManual: false, untilMs: this.#now() + banTimeoutMs })
  }

  /** A lent server broke: look at the host now, not at the next interval. */
  suspect(): void {
    this.#nextCheckMs = this.#now()
  }

  succeeded(): void {
    this.#isHealthy = true
  }

  /** Says at each look whether a replica is too far behind. */
  lags(isBehind: boolean): void {
    if (isBehind && !this.#ban && this.#options.mayBan()) {
      const untilMs = Number.POSITIVE_INFINITY
      this.#setBan({ reason: 'replica lag', isManual: false, isOfLag: true, untilMs })
    } else if (!isBehind && this.#ban?.isOfLag) this.lift()
  }

  /** A host that nobody has seen yet: it takes no reads until a check has passed, which is due now. */
  awaitCheck(): void {
    this.suspect()
    if (this.#ban || !this.#options.mayBan()) return
    this.#setBan({ reason: 'not checked yet', isManual: false, untilMs: this.#now() })
  }

  banByHand(): void {
    this.#setBan({ reason: 'manual ban', isManual: true, untilMs: Number.POSITIVE_INFINITY })
  }

  /** Lifts any ban, also a manual one. */
  lift(): void {
    if (!this.#ban) return
    this.#ban = undefined
    this.#options.onLift()
  }

  /** All hosts are down: gives every host that was not banned by hand another chance. */
  forgive(): void {
    if (this.#ban && !this.#ban.isManual) this.lift()
  }

  /** Takes over what was known of the host before a reload. */
  inherit(older: Health): void {
    this.#isHealthy = older.#isHealthy
    this.#ban = older.#ban
  }

  /** One beat: runs a check when it is time; while one runs, resolves with it. */
  beat(): Promise<void> {
    if (this.#checking !== undefined) return this.#checking
    if (!this.#isDue()) return Promise.resolve()
    this.#checking = this.#check().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  async #check(): Promise<void> {
    const mustOpen = this.#ban !== undefined || !this.#isHealthy
    const isGood = await this.#options.check(mustOpen)
    this.#lastCheckAtMs = this.#now()
    const { idleCheckIntervalMs } = this.#options.settings
    const interval = idleCheckIntervalMs > 0 ? idleCheckIntervalMs : Number.POSITIVE_INFINITY
    this.#nextCheckMs = this.#now() + interval
    if (isGood === undefined) return
    if (!isGood) {
      this.failed('health check failed')
      this.#nextCheckMs = this.#now() + Math.min(interval, 3 * RETRY_MS)
      return
    }
    this.#isHealthy = true
    if (this.#ban && !this.#ban.isManual && this.#now() >= this.#ban.untilMs) this.lift()
  }

  get lastCheckAtMs(): number | undefined {
    return this.#lastCheckAtMs
  }

  #isDue(): boolean {
    const now = this.#now()
    if (this.#ban && !this.#ban.isManual && now >= this.#ban.untilMs) {
      return now >= this.#nextCheckMs || (this.#lastCheckAtMs ?? 0) < this.#ban.untilMs
    }
    return now >= this.#nextCheckMs
  }

  #setBan(ban: Ban): void {
    this.#ban = ban
    this.#options.onBan(ban.reason)
  }

  #now(): number {
    return this.#options.clock.monotonicMs()
  }
}

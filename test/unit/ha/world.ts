/** A world of HA nodes and their state database as plain objects, on a clock that a test moves. */
import type { Clock } from '../../../src/base/clock.js'
import { engineError } from '../../../src/errors/engine-error.js'
import { openHaLog } from '../../../src/ha/ha-log.js'
import type { HaGroup, HaPlan } from '../../../src/ha/ha-plan.js'
import type { Link, OpenLink } from '../../../src/ha/links.js'
import { watchGroups } from '../../../src/ha/watcher.js'
import type { TextRow } from '../../../src/pg/admin-query.js'
import { FakeClock } from '../../support/fake-clock.js'

export const group = (id: number, more: Partial<HaGroup> = {}): HaGroup => ({
  id,
  name: `g${id}`,
  primary: `host=p${id} dbname=db01 user=app password=secret`,
  standby: `host=s${id} dbname=db01 user=app password=secret`,
  heartbeatIntervalMs: 10_000,
  switchAfterMs: 20_000,
  fencingCommand: undefined,
  promote: false,
  ...more,
})

/** Nodes that answer or not, and the rows of ha_config by the clock of the state database. */
export class World {
  readonly clock = new FakeClock()
  readonly down = new Set<string>()
  readonly readOnly = new Set<string>()
  /** The connection to it is found broken once. */
  readonly broken = new Set<string>()
  stateDown = false
  readonly probes: { host: string; atMs: number }[] = []
  readonly lines: string[] = []
  readonly stop = new AbortController()
  open = 0
  stateOpened = 0
  switchedAtMs: number | undefined
  /** Each change of a route, with the ages at that moment. */
  readonly flips: {
    atMs: number
    to: 'primary' | 'standby'
    fromAgeMs: number
    toAgeMs: number
  }[] = []
  readonly #locks = new Map<number, Link>()
  readonly rows: { current: 'primary' | 'standby'; primary: number; standby: number }[]
  readonly plan: HaPlan

  constructor(groups: readonly HaGroup[] = [group(1)]) {
    const nowMs = this.clock.nowMs()
    this.rows = groups.map(() => ({ current: 'primary', primary: nowMs, standby: nowMs }))
    this.plan = {
      state: 'host=state user=hauser password=secret',
      cluster: 'cluster01',
      user: 'hauser',
      password: 'secret',
      connectTimeoutMs: 10_000,
      statementTimeout: 60,
      groups,
    }
  }

  readonly openLink: OpenLink = async (conninfo) => {
    const host = conninfo === undefined ? 'state' : (/host=(\S+)/.exec(conninfo)?.[1] ?? '')
    if (host === 'state' ? this.stateDown : this.down.has(host))
      throw engineError('CONNECTION_LOST', { where: host, reason: 'down' })
    this.open++
    if (host === 'state') this.stateOpened++
    let isOpen = true
    const link: Link = {
      run: async (sql, values = []) => {
        if (host === 'state') return this.#state(sql, values, link)
        return this.#node(host, sql)
      },
      close: async () => {
        if (isOpen) this.open--
        for (const [id, holder] of this.#locks) if (holder === link) this.#locks.delete(id)
        isOpen = false
      },
    }
    return link
  }

  #node(host: string, sql: string): TextRow[] {
    if (this.down.has(host)) throw engineError('CONNECTION_LOST', { where: host, reason: 'down' })
    if (this.broken.delete(host))
      throw engineError('CONNECTION_LOST', { where: host, reason: 'reset' })
    if (sql.startsWith('update') && this.readOnly.has(host))
      throw engineError('HA_TIMEOUT', { what: 'a write', ms: 1 })
    this.probes.push({ host, atMs: this.clock.nowMs() })
    return []
  }

  #state(sql: string, values: readonly (string | number | null)[], link: Link): TextRow[] {
    if (this.stateDown) throw engineError('CONNECTION_LOST', { where: 'state', reason: 'down' })
    const nowMs = this.clock.nowMs()
    if (sql.includes('advisory')) return this.#lock(sql, Number(values[0]), link)
    if (sql.includes('select ha_groupid'))
      return this.rows.map((row, i) => ({
        ha_groupid: `${i + 1}`,
        primary_hostid: `${2 * i}`,
        standby_hostid: `${2 * i + 1}`,
        current_hostid: `${row.current === 'primary' ? 2 * i : 2 * i + 1}`,
        primary_age: `${(nowMs - row.primary) / 1000}`,
        standby_age: `${(nowMs - row.standby) / 1000}`,
      }))
    const row = this.rows[Number(values[0]) - 1]!
    const beat = /set (primary|standby)_hearttime/.exec(sql)
    if (beat) {
      row[beat[1] as 'primary' | 'standby'] = nowMs
      return []
    }
    const to = /set current_hostid = (primary|standby)_hostid/.exec(sql)?.[1] as
      | 'primary'
      | 'standby'
    const from = to === 'primary' ? 'standby' : 'primary'
    const [fromAgeMs, toAgeMs] = [nowMs - row[from], nowMs - row[to]]
    const bound = Number(/< ([\d.]+)/.exec(sql)?.[1]) * 1000
    if (row.current === to || fromAgeMs <= bound || toAgeMs >= bound) return []
    row.current = to
    this.flips.push({ atMs: nowMs, to, fromAgeMs, toAgeMs })
    this.switchedAtMs = nowMs
    return [{ current_hostid: '1' }]
  }

  #lock(sql: string, id: number, link: Link): TextRow[] {
    if (sql.includes('unlock')) {
      if (this.#locks.get(id) === link) this.#locks.delete(id)
      return []
    }
    const isFree = (this.#locks.get(id) ?? link) === link
    if (isFree) this.#locks.set(id, link)
    return [{ locked: isFree ? 't' : 'f' }]
  }

  /** `clock` may tell another time of day. */
  watch(clock: Clock = this.clock): Promise<void> {
    const { plan } = this
    const line = openHaLog({
      file: undefined,
      echo: (text) => void this.lines.push(text),
      clock,
    })
    return watchGroups({ plan, open: this.openLink, clock, line, signal: this.stop.signal })
  }

  /** In small steps, so that what follows a timer over many promises has happened before the next. */
  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 500) {
      await this.clock.advance(Math.min(500, left))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async seconds(count: number): Promise<void> {
    await this.advance(count * 1000)
  }
}

/** A TrafficGate over the console of one running proxy: PAUSE, RELOAD, RESUME. */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery, type TextRow } from '../../pg/admin-query.js'
import { type HostClient, type HostTarget, openHostClient } from '../../pg/host-client.js'
import { quoteName } from '../../pg/sql-names.js'
import type { PinnedClient, TrafficGate } from './traffic-gate.js'

/** Between questions whether a proxy is ready; nobody is paused then. */
const ASK_AGAIN_MS = 100

export class ConsoleGate implements TrafficGate {
  readonly #console: HostTarget
  readonly #clock: Clock
  #client: HostClient | undefined

  constructor(console: HostTarget, clock: Clock) {
    this.#console = console
    this.#clock = clock
  }

  async open(): Promise<void> {
    await this.#connection()
  }

  async pause(database: string, timeoutMs: number): Promise<void> {
    const paused = this.#say(`PAUSE ${quoteName(database)}`)
    const over = new AbortController()
    const late = this.#clock.sleep(timeoutMs, over.signal).then(() => {
      if (!over.signal.aborted) throw engineError('RESHARD_PAUSE', { budgetMs: timeoutMs })
    })
    try {
      await Promise.race([paused, late])
    } catch (error) {
      paused.catch(() => undefined)
      // The console answers PAUSE when all have come back: what waits for it must not hold up RESUME.
      await this.close()
      throw error
    } finally {
      over.abort()
    }
  }

  async reload(): Promise<void> {
    await this.#say('RELOAD')
  }

  async resume(database: string): Promise<void> {
    await this.#say(`RESUME ${quoteName(database)}`)
  }

  /** The rows of pgshard.proxy that stand for this proxy: one for each worker and database. */
  async proxyIds(): Promise<Set<string>> {
    const rows = await this.#rows('SHOW TOPOLOGY')
    return new Set(rows.map((row) => row['proxy_id'] as string))
  }

  /** Clients of a database that keep their server, whatever they do. */
  async pinned(database: string): Promise<PinnedClient[]> {
    return this.#pinnedRows(database).then((rows) =>
      rows.map((row) => ({
        proxy: `${this.#console.host}:${this.#console.port}`,
        id: Number(row['id']),
        user: row['user'] ?? '',
        why: row['pinned_by'] ?? '',
      })),
    )
  }

  async endPinned(database: string): Promise<void> {
    for (const row of await this.#pinnedRows(database)) await this.#say(`KILL_CLIENT ${row['id']}`)
  }

  async #pinnedRows(database: string): Promise<TextRow[]> {
    const rows = await this.#rows('SHOW CLIENTS')
    return rows.filter((row) => row['database'] === database && (row['pinned_by'] ?? '') !== '')
  }

  async #rows(command: string): Promise<TextRow[]> {
    return adminQuery(await this.#connection(), command)
  }

  async ready(database: string, timeoutMs: number): Promise<boolean> {
    const untilMs = this.#clock.monotonicMs() + timeoutMs
    for (;;) {
      const rows = await this.#rows('SHOW TOPOLOGY')
      const own = rows.filter((row) => row['database'] === database)
      if (own.length > 0 && own.every((row) => row['state'] === 'ready')) return true
      if (this.#clock.monotonicMs() >= untilMs) return false
      await this.#clock.sleep(ASK_AGAIN_MS)
    }
  }

  /** A proxy looks at the epoch before it goes on. */
  follow(database: string): Promise<void> {
    return this.resume(database)
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    // Not waited for: a console that is busy with PAUSE does not hear Terminate.
    client?.end().catch(() => undefined)
  }

  async #say(command: string): Promise<void> {
    const client = await this.#connection()
    await client.query(command)
  }

  async #connection(): Promise<HostClient> {
    if (this.#client) return this.#client
    try {
      this.#client = await openHostClient(this.#console, { applicationName: 'pgshard reshard' })
      this.#client.once('end', () => {
        this.#client = undefined
      })
      return this.#client
    } catch (error) {
      const { host, port, database } = this.#console
      const reason = error instanceof Error ? error.message || String(error) : String(error)
      throw engineError(
        'RESHARD_PROXY',
        { where: `${host}:${port}/${database}`, reason },
        { cause: error },
      )
    }
  }
}

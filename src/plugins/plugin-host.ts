/**
 * The plugins of a process: loaded and told to begin once, asked for each statement, told to end. A plugin that throws, is slow
 * or names a shard that is not there is reported, and the statement goes its own way.
 */
import { isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { isTimeout, makeGuardedCall } from './guarded-call.js'
import {
  type DefinedPlugin,
  PLUGIN_API_VERSION,
  type PluginInput,
  type PluginRoute,
} from './plugin-api.js'

/** One entry of [[plugins]]. */
export interface PluginEntry {
  readonly name: string
  /** Path of the ES module; absent: its name is that of an installed package. */
  readonly module: string | undefined
  readonly config: string | undefined
  /** Time for one call of `route`; 0: not watched. */
  readonly timeoutMs: number
}

interface Running {
  readonly entry: PluginEntry
  readonly plugin: DefinedPlugin
  /** Calls in a row that ran out of time. */
  timeouts: number
  isOff: boolean
  /** When each kind of failure was last reported: a broken plugin must not fill the log. */
  readonly reported: Map<string, { atMs: number; since: number }>
}

export interface PluginHostOptions {
  readonly log: Log
  readonly clock: Clock
  /** Time for `init` and `fini`. */
  readonly lifeMs?: number
}

/** A plugin's wish, and whose it is. */
export interface Wish extends PluginRoute {
  readonly plugin: string
}

const TIMEOUTS_ALLOWED = 5
const REPORT_EVERY_MS = 10_000

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

const moduleOf = ({ module, name }: PluginEntry): string => {
  if (module === undefined) return name
  return pathToFileURL(isAbsolute(module) ? module : resolve(module)).href
}

/** Why an export is no plugin that we can run; undefined when it is one. */
export function unfit(exported: unknown): string | undefined {
  if (exported === null || typeof exported !== 'object')
    return 'its default export is no plugin: export definePlugin({ route })'
  const { apiVersion, route } = exported as Partial<DefinedPlugin>
  if (apiVersion !== PLUGIN_API_VERSION)
    return `it is made for version ${String(apiVersion)} of the plugin interface, this is ${PLUGIN_API_VERSION}`
  return typeof route === 'function' ? undefined : 'it has no function route'
}

export class PluginHost {
  readonly #options: PluginHostOptions
  readonly #running: Running[] = []
  readonly #call = makeGuardedCall()

  constructor(options: PluginHostOptions) {
    this.#options = options
  }

  get isEmpty(): boolean {
    return this.#running.length === 0
  }

  /** Loads and begins each; one that cannot is reported and left out. */
  async start(entries: readonly PluginEntry[]): Promise<void> {
    for (const entry of entries) {
      try {
        const loaded = (await import(moduleOf(entry))) as { default?: unknown }
        const reason = unfit(loaded.default)
        if (reason !== undefined) throw new Error(reason)
        await this.add(entry, loaded.default as DefinedPlugin)
      } catch (error) {
        this.#options.log.error('a plugin was not loaded', {
          plugin: entry.name,
          error: messageOf(error),
        })
      }
    }
  }

  /** @throws what `init` throws, or that it did not end */
  async add(entry: PluginEntry, plugin: DefinedPlugin): Promise<void> {
    const { log } = this.#options
    const context = Object.freeze({
      name: entry.name,
      config: entry.config,
      log: (message: string) => log.info(String(message), { plugin: entry.name }),
    })
    await this.#within('init', () => plugin.init?.(context))
    this.#running.push({ entry, plugin, timeouts: 0, isOff: false, reported: new Map() })
    log.info('a plugin was loaded', { plugin: entry.name })
  }

  /** The first wish that a plugin has. Never throws. */
  ask(input: PluginInput): Wish | undefined {
    for (const running of this.#running) {
      if (running.isOff) continue
      const wish = this.#ask(running, input)
      if (wish) return wish
    }
    return undefined
  }

  /** Ends each plugin, the last first. Never throws. */
  async stop(): Promise<void> {
    for (const { entry, plugin } of this.#running.splice(0).reverse()) {
      try {
        await this.#within('fini', () => plugin.fini?.())
        this.#options.log.info('a plugin was ended', { plugin: entry.name })
      } catch (error) {
        this.#options.log.error('a plugin did not end well', {
          plugin: entry.name,
          error: messageOf(error),
        })
      }
    }
  }

  #ask(running: Running, input: PluginInput): Wish | undefined {
    const { entry, plugin } = running
    try {
      const wish = this.#call(() => plugin.route(input), entry.timeoutMs)
      running.timeouts = 0
      const wrong = wrongIn(wish, input.cluster.shardCount)
      if (wrong === undefined) return wish ? { ...wish, plugin: entry.name } : undefined
      this.#report(running, 'a plugin gave a route that cannot be', wrong)
    } catch (error) {
      if (isTimeout(error)) this.#tooSlow(running)
      else this.#report(running, 'a plugin failed', messageOf(error))
    }
    return undefined
  }

  #tooSlow(running: Running): void {
    running.timeouts++
    const limit = `route() took longer than ${running.entry.timeoutMs} ms`
    this.#report(running, 'a plugin was stopped', limit)
    if (running.timeouts < TIMEOUTS_ALLOWED) return
    running.isOff = true
    this.#options.log.error('a plugin is asked no more', {
      plugin: running.entry.name,
      error: `${TIMEOUTS_ALLOWED} calls in a row ran out of time`,
    })
  }

  #report(running: Running, what: string, error: string): void {
    const nowMs = this.#options.clock.monotonicMs()
    const last = running.reported.get(what)
    if (last && nowMs - last.atMs < REPORT_EVERY_MS) {
      last.since++
      return
    }
    running.reported.set(what, { atMs: nowMs, since: 0 })
    const more = last && last.since > 0 ? { unreported: last.since } : {}
    this.#options.log.error(what, { plugin: running.entry.name, error, ...more })
  }

  async #within(what: string, work: () => void | Promise<void>): Promise<void> {
    const { clock, lifeMs = 10_000 } = this.#options
    const given = new AbortController()
    const late = clock.sleep(lifeMs, given.signal).then(() => {
      throw new Error(`${what}() did not end within ${lifeMs} ms`)
    })
    // It is cut short below; nobody waits for it then.
    late.catch(() => undefined)
    try {
      await Promise.race([Promise.resolve().then(work), late])
    } finally {
      given.abort()
    }
  }
}

/** What is wrong with a plugin's answer; undefined when it can be followed. */
function wrongIn(wish: unknown, shardCount: number): string | undefined {
  if (wish === undefined || wish === null) return undefined
  if (typeof wish !== 'object') return `route() gave ${typeof wish}, not an object`
  if (wish instanceof Promise) {
    wish.catch(() => undefined)
    return 'route() must not be asynchronous'
  }
  const { shard, role } = wish as PluginRoute
  const isShard = typeof shard === 'number' && Number.isInteger(shard)
  if (shard !== undefined && !(isShard && shard >= 0 && shard < shardCount))
    return `there is no shard ${String(shard)}: shards are 0 to ${shardCount - 1}`
  if (role !== undefined && role !== 'primary' && role !== 'replica')
    return `role must be primary or replica, not ${String(role)}`
  return undefined
}

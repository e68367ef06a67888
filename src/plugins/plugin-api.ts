/**
 * What a plugin is: an ES module whose default export comes from `definePlugin`. Part of the public surface (`src/index.ts`);
 * a change that breaks plugins raises `PLUGIN_API_VERSION`.
 */

/** Plugins made for another version are not loaded. */
export const PLUGIN_API_VERSION = 1

/** Everything handed to a plugin is frozen and lent for the call. */
export interface PluginInput {
  readonly database: string
  readonly statement: PluginStatement
  /** Of a Bind; empty for simple queries, and where nothing is bound yet. */
  readonly parameters: readonly PluginParameter[]
  readonly session: {
    readonly searchPath: readonly string[]
    /** Hints of SET and the startup packet; those in comments are obeyed already in `route`. */
    readonly shard?: number
    readonly shardingKey?: string
    readonly role?: 'primary' | 'replica'
  }
  readonly cluster: PluginCluster
  /** What happens without the plugin. */
  readonly route: {
    readonly how: string
    readonly shards: readonly number[]
    readonly role: 'primary' | 'any'
    readonly reasons: readonly string[]
  }
}

export interface PluginStatement {
  readonly text: string
  /** `select`, `insert`, `ddl`, …; as `pgshard route` knows them. */
  readonly kind: string
  readonly isRead: boolean
  readonly tables: readonly {
    readonly schema?: string
    readonly name: string
    readonly isTarget: boolean
  }[]
  readonly functions: readonly { readonly schema?: string; readonly name: string }[]
  /** PostgreSQL's own parse tree of the statement (a RawStmt of libpg_query); parsed when it is first read. */
  readonly ast: unknown
}

export interface PluginParameter {
  readonly isNull: boolean
  readonly format: 'text' | 'binary'
  /** Undefined for NULL and for binary values. */
  readonly text: string | undefined
  /** A copy. */
  bytes(): Uint8Array
}

export interface PluginCluster {
  readonly shardCount: number
  readonly shards: readonly {
    readonly shard: number
    readonly hosts: readonly {
      readonly host: string
      readonly port: number
      readonly role: string
    }[]
  }[]
  readonly shardedTables: readonly {
    readonly schema?: string
    readonly name?: string
    readonly column: string
    readonly keyType: string
  }[]
}

/** A shard, a role or both; undefined leaves the statement to pgshard. */
export interface PluginRoute {
  readonly shard?: number
  /** `replica`: the statement only reads. */
  readonly role?: 'primary' | 'replica'
}

export interface PluginContext {
  /** `[[plugins]] name` of the configuration. */
  readonly name: string
  /** `[[plugins]] config`: the path of the plugin's own configuration, as written. */
  readonly config: string | undefined
  log(message: string): void
}

export interface Plugin {
  /** Once, before the first statement; may be asynchronous. Throws to stay out. */
  init?(context: PluginContext): void | Promise<void>
  /** For each statement that reads or changes data; synchronous. */
  route(input: PluginInput): PluginRoute | undefined
  /** Once, when `serve` ends. */
  fini?(): void | Promise<void>
}

export interface DefinedPlugin extends Plugin {
  readonly apiVersion: number
}

/** Checks a plugin's types and writes the version of the interface that it was made for into it. */
export function definePlugin(plugin: Plugin): DefinedPlugin {
  return Object.assign(Object.create(plugin) as Plugin, { apiVersion: PLUGIN_API_VERSION })
}

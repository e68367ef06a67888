/** What `loadConfig` returns: plain frozen values, handed down from the top. Secrets are in here; `show-config.ts` hides them. */
import type { HbaRule } from '../auth/hba.js'
import type { KeyType } from '../datum/key-type.js'
import type { ShardingConfig } from '../sharding/sharded-table.js'
import type { DatabaseTopology, PoolOverrides } from '../topology/topology.js'
import type {
  otelKeys,
  replicationKeys,
  rewriteKeys,
  tcpKeys,
  vaultKeys,
} from './keys/config-keys-sections.js'
import type { GeneralConfig } from './keys/config-sections.js'
import type { ValuesOf } from './keys/key-types.js'

export type { GeneralConfig }
export type RewriteConfig = ValuesOf<typeof rewriteKeys>
export type TcpConfig = ValuesOf<typeof tcpKeys>
export type OtelConfig = ValuesOf<typeof otelKeys>
export type VaultConfig = ValuesOf<typeof vaultKeys>
export type ReplicationConfig = ValuesOf<typeof replicationKeys>

export type AuthType = GeneralConfig['authType']

export interface User extends PoolOverrides {
  readonly name: string
  /** Names of databases that exist, `all_databases` resolved. */
  readonly databases: readonly string[]
  /** Clear passwords, all tried for clients, the first that fits towards servers. */
  readonly passwords: readonly string[]
  /** SCRAM verifier for clients. */
  readonly passwordHash?: string
  /** general.authType unless the user has its own. */
  readonly authType: AuthType
  readonly authQuery?: string
  readonly maxUserClientConnections?: number
  /** Name in the client certificate. */
  readonly identity?: string
  readonly clientCertificateRequired: boolean
  readonly serverUser?: string
  readonly serverPassword?: string
  readonly serverAuth:
    | 'password'
    | 'rds_iam'
    | 'azure_workload_identity'
    | 'vault_dynamic'
    | 'vault_static'
  readonly serverIamRegion?: string
  readonly serverVaultPath?: string
  readonly vaultRefreshPercent: number
  readonly vaultPath?: string
  readonly replicationMode: boolean
  readonly replicationSharding?: string
  readonly readOnly?: boolean
  readonly schemaAdmin: boolean
  /** Of the user, else general. */
  readonly crossShardDisabled: boolean
  /** Of the user, else general; undefined: two_phase where every shard allows it, else error. */
  readonly crossShardWrites?: CrossShardWrites
}

export type CrossShardWrites = 'two_phase' | 'best_effort' | 'error'

export interface AdminConfig {
  /** Database names that lead to the console. */
  readonly names: readonly string[]
  readonly user: string
  /** undefined: nobody gets in. */
  readonly password?: string
}

/** One entry of [[plugins]]. */
export interface PluginConfig {
  readonly name: string
  /** Absent: the name is that of an installed package. */
  readonly module: string | undefined
  readonly config: string | undefined
  readonly timeoutMs: number
}

/** One pair of primary and standby; its id is its place in the file, from 1. */
export interface HaGroupConfig {
  readonly id: number
  readonly name: string
  readonly database: string | undefined
  readonly shard: number
  readonly primary: string
  readonly standby: string
  readonly heartbeatIntervalMs: number
  readonly switchAfterMs: number
  readonly fencingCommand: string | undefined
  readonly promote: boolean
}

/** [ha] and [[ha_groups]]. */
export interface HaConfig {
  readonly state: string
  readonly cluster: string
  readonly user: string
  readonly password: string | undefined
  readonly connectTimeoutMs: number
  readonly statementTimeout: number
  readonly groups: readonly HaGroupConfig[]
  /** Functions of [[function_routes]] that a group runs. */
  readonly routes: readonly { readonly functionName: string; readonly groupId: number }[]
}

/** One entry of [[function_routes]]: a function of one database and where it runs. */
export interface FunctionRouteConfig {
  readonly database: string
  readonly function: string
  /** Exactly one of these two; a group's is its shard. */
  readonly shard?: number
  /** Number of the argument, from 1, whose hash chooses the shard. */
  readonly hashArgument?: number
  readonly hashType: KeyType
}

/** Settings of one database that are not its hosts. */
export interface DatabaseOptions {
  readonly queryParser: GeneralConfig['queryParser']
  /** Reference tables whose reads stay on one shard for a client. */
  readonly stickyTables: readonly string[]
}

/** One key for `config show`, secrets hidden. */
export interface ShownKey {
  readonly key: string
  readonly value: ShownValue
  /** `pgdog.toml:12`, `environment PGDOG_PORT` or `default`. */
  readonly source: string
}

/** null: none. Unlimited is the word. */
export type ShownValue = string | number | boolean | null | readonly unknown[] | object

export interface ShownSection {
  readonly section: string
  /** Of a list of tables. */
  readonly index?: number
  readonly keys: readonly ShownKey[]
}

export interface LoadedConfig {
  readonly general: GeneralConfig
  readonly databases: readonly DatabaseTopology[]
  readonly databaseOptions: ReadonlyMap<string, DatabaseOptions>
  /** One for every database. */
  readonly sharding: ReadonlyMap<string, ShardingConfig>
  readonly users: readonly User[]
  readonly admin: AdminConfig
  /** Absent: no rules are written. */
  readonly hba?: readonly HbaRule[]
  readonly rewrite: RewriteConfig
  readonly tcp: TcpConfig
  readonly replication: ReplicationConfig
  readonly otel: OtelConfig
  readonly vault?: VaultConfig
  readonly plugins: readonly PluginConfig[]
  /** Absent: there are no groups. */
  readonly ha?: HaConfig
  readonly functionRoutes: readonly FunctionRouteConfig[]
  readonly multiTenantColumn?: string
  /** Each with its place, for the log and `config check`. */
  readonly warnings: readonly string[]
  /** Files that were read, as named. */
  readonly files: readonly string[]
  /** Everything that was written or defaulted, secrets hidden. */
  readonly shown: readonly ShownSection[]
}

/** How to load: given flags win over the files of the working directory. */
export interface LoadOptions {
  /** Default: `pgdog.toml` in the working directory, if it is there. */
  readonly configPath?: string
  /** Default: `users.toml` beside the config file, if it is there. */
  readonly usersPath?: string
  readonly databaseUrls?: readonly string[]
  /** Keys of [general] that stand above the files, as text. */
  readonly settings?: ReadonlyMap<string, string>
  readonly env: Readonly<Record<string, string | undefined>>
}

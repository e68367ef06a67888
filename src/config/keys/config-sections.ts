/** All sections of pgdog.toml and users.toml with their keys: the one table behind validation, `docs/config.md` and `config show`. */
import { adminKeys, databaseKeys, userKeys } from './config-keys-databases.js'
import { healthKeys, listenKeys, pipelineKeys, poolKeys } from './config-keys-pool.js'
import { parserKeys, reshardKeys, shardingKeys, twoPhaseKeys } from './config-keys-routing.js'
import * as sections from './config-keys-sections.js'
import { cacheKeys, logKeys, metricKeys, securityKeys } from './config-keys-service.js'
import type { KeyDefinition, KeyTable, ValuesOf } from './key-types.js'
import { refusedKeys } from './refused-keys.js'

export const generalKeys = {
  ...listenKeys,
  ...poolKeys,
  ...pipelineKeys,
  ...healthKeys,
  ...securityKeys,
  ...cacheKeys,
  ...parserKeys,
  ...shardingKeys,
  ...twoPhaseKeys,
  ...reshardKeys,
  ...logKeys,
  ...metricKeys,
} as const

export type GeneralConfig = ValuesOf<typeof generalKeys>

export interface SectionDefinition {
  readonly name: string
  /** `[[name]]` rather than `[name]`. */
  readonly list: boolean
  readonly keys: KeyTable
  readonly file: 'pgdog.toml' | 'users.toml' | 'either'
  /** PgDog ignores unknown keys here; we warn. Elsewhere they are errors. */
  readonly lenient: boolean
  readonly summary: string
}

type Options = Partial<Pick<SectionDefinition, 'list' | 'file' | 'lenient'>>

const section = (
  name: string,
  keys: KeyTable,
  summary: string,
  options: Options = {},
): SectionDefinition => ({
  name,
  keys,
  summary,
  list: false,
  file: 'pgdog.toml',
  lenient: false,
  ...options,
})

const list = { list: true } as const
const lenientList = { list: true, lenient: true } as const

/** In the order of the reference. A section `a.b` is a list of tables inside the entries of `a`. */
export const configSections: readonly SectionDefinition[] = [
  section('general', generalKeys, 'How the proxy works.'),
  section(
    'databases',
    databaseKeys,
    'The hosts of each database; several entries of one name are shards and replicas.',
    list,
  ),
  section('users', userKeys, 'Who may connect.', { list: true, file: 'users.toml' }),
  section('admin', adminKeys, 'The console. users.toml wins over pgdog.toml.', { file: 'either' }),
  section('sharded_tables', sections.shardedTableKeys, 'Where rows live.', list),
  section(
    'sharded_tables.mapping',
    sections.mappingKeys,
    'Lists and ranges instead of a hash: a value listed, else the first range that has it, else the entry with a shard only.',
    list,
  ),
  section(
    'sharded_mappings',
    sections.shardedMappingKeys,
    'Deprecated: mappings apart from their table.',
    list,
  ),
  section(
    'sharded_schemas',
    sections.shardedSchemaKeys,
    'Whole schemas on one shard.',
    lenientList,
  ),
  section(
    'omnisharded_tables',
    sections.omnishardedKeys,
    'Reference tables: whole on every shard.',
    lenientList,
  ),
  section('query_parsers', sections.queryParserKeys, 'The parser, by database.', lenientList),
  section('rewrite', sections.rewriteKeys, 'Statements that PgDog rewrites.'),
  section('mirroring', sections.mirroringKeys, 'Statements sent to a second database too.', list),
  section(
    'multi_tenant',
    sections.multiTenantKeys,
    'A guard against statements without a tenant.',
    { lenient: true },
  ),
  section('replication', sections.replicationKeys, 'Resharding.', { lenient: true }),
  section('replica_lag', sections.replicaLagKeys, 'Read for compatibility.'),
  section('tcp', sections.tcpKeys, 'Sockets.'),
  section('memory', sections.memoryKeys, 'Read for compatibility.'),
  section('otel', sections.otelKeys, 'Metrics pushed by OTLP.'),
  section('vault', sections.vaultKeys, 'Passwords from HashiCorp Vault.'),
  section(
    'plugins',
    sections.pluginKeys,
    "ES modules that choose shards; see plugins.md. PgDog's native libraries cannot be loaded.",
    list,
  ),
  section('ha', sections.haKeys, 'Where the state of the HA groups is, and who probes.'),
  section(
    'ha_groups',
    sections.haGroupKeys,
    'Pairs of primary and standby that switch by heartbeat.',
    list,
  ),
  section(
    'function_routes',
    sections.functionRouteKeys,
    'Functions that run where they belong.',
    list,
  ),
]

const byName = new Map(configSections.map((entry) => [entry.name, entry]))

/** The section of a name that is known to exist. */
export function sectionNamed(name: string): SectionDefinition {
  const found = byName.get(name)
  if (!found) throw new TypeError(`no section ${name}`)
  return found
}

/** refused: an error, because to ignore it would be unsafe or wrong. unused: never needed here. */
export type KeyEffect = 'working' | 'refused' | 'unused'

/** What writing a key does. */
export function effectOf(sectionName: string, key: string, definition: KeyDefinition): KeyEffect {
  if (definition.unused !== undefined) return 'unused'
  const isRefused = refusedKeys.has(`${sectionName}.${key}`) || refusedKeys.has(`${sectionName}.*`)
  return isRefused ? 'refused' : 'working'
}

/** The environment variable that gives a key's default; undefined: none. */
export function environmentName(
  sectionName: string,
  key: string,
  definition: KeyDefinition,
): string | undefined {
  if (definition.env !== undefined) return definition.env ?? undefined
  return sectionName === 'general' && !definition.own ? `PGDOG_${key.toUpperCase()}` : undefined
}

/** Checks over several sections: keys that contradict one another, files that are not there, settings that would answer wrongly. */
import { accessSync, constants } from 'node:fs'
import type { ShardingConfig } from '../sharding/sharded-table.js'
import type { DatabaseTopology } from '../topology/topology.js'
import type { EntriesOf } from './compile/compile-sharding.js'
import { type GeneralConfig, generalKeys } from './keys/config-sections.js'
import { outputName } from './keys/key-types.js'
import type { DatabaseOptions } from './loaded-config.js'
import type { Place, Problems } from './problems.js'

export interface CheckScope {
  readonly general: GeneralConfig
  readonly databases: readonly DatabaseTopology[]
  readonly databaseOptions: ReadonlyMap<string, DatabaseOptions>
  readonly sharding: ReadonlyMap<string, ShardingConfig>
  readonly entriesOf: EntriesOf
  readonly problems: Problems
}

/** Where a general key was written, else the section. */
function generalPlace(scope: CheckScope, key: string): Place | undefined {
  return scope.entriesOf('general').at(-1)?.placeOf(key)
}

function checkTlsPair(
  scope: CheckScope,
  certificate: 'tls_certificate' | 'tls_server_certificate',
  key: 'tls_private_key' | 'tls_server_private_key',
) {
  const { general, problems } = scope
  const has = (name: keyof typeof generalKeys) =>
    general[outputName(name, '') as keyof GeneralConfig] !== undefined
  if (has(certificate) && !has(key))
    problems.error(generalPlace(scope, certificate), `${certificate} needs ${key}`)
  if (has(key) && !has(certificate))
    problems.error(generalPlace(scope, key), `${key} needs ${certificate}`)
}

/** What begins with a handshake cannot go on without one. */
function checkNegotiation(scope: CheckScope): void {
  const { tlsServerNegotiation, tlsVerify } = scope.general
  if (tlsServerNegotiation === 'direct' && tlsVerify === 'prefer')
    scope.problems.error(
      generalPlace(scope, 'tls_server_negotiation'),
      'tls_server_negotiation = "direct" needs tls_verify = "verify_ca" or "verify_full"',
    )
}

function checkTls(scope: CheckScope): void {
  const { general, problems } = scope
  checkTlsPair(scope, 'tls_certificate', 'tls_private_key')
  checkTlsPair(scope, 'tls_server_certificate', 'tls_server_private_key')
  for (const [key, definition] of Object.entries(generalKeys)) {
    const path = general[outputName(key, definition.unit) as keyof GeneralConfig]
    if (!key.startsWith('tls_') || definition.type !== 'path' || typeof path !== 'string') continue
    try {
      accessSync(path, constants.R_OK)
    } catch {
      problems.error(generalPlace(scope, key), `${key}: could not read "${path}"`)
    }
  }
  const noTls = general.tlsCertificate === undefined
  if (general.tlsClientRequired && noTls)
    problems.error(
      generalPlace(scope, 'tls_client_required'),
      'tls_client_required needs tls_certificate and tls_private_key',
    )
  if (general.tlsClientCaCertificate !== undefined && noTls)
    problems.error(
      generalPlace(scope, 'tls_client_ca_certificate'),
      'tls_client_ca_certificate needs tls_certificate and tls_private_key',
    )
  if (general.passthroughAuth === 'enabled' || general.passthroughAuth === 'enabled_allow_change') {
    if (noTls)
      problems.error(
        generalPlace(scope, 'passthrough_auth'),
        `passthrough_auth = "${general.passthroughAuth}" needs tls_certificate, because clients send their passwords in clear`,
      )
  }
}

/** Without the parser a statement's shard is unknown. */
function checkParser(scope: CheckScope): void {
  for (const { name, shards } of scope.databases) {
    const level = scope.databaseOptions.get(name)?.queryParser ?? 'auto'
    if (shards.length < 2 || level === 'on' || level === 'auto') continue
    const own = scope
      .entriesOf('query_parsers')
      .findLast((entry) => entry.values['database'] === name)
    scope.problems.error(
      own?.placeOf('level') ?? generalPlace(scope, 'query_parser'),
      `query_parser = "${level}" cannot serve database "${name}", which has ${shards.length} shards`,
    )
  }
}

function checkRoles(scope: CheckScope): void {
  const { general, problems } = scope
  const hosts = scope.databases.flatMap(({ shards }) => shards.flatMap((shard) => shard.hosts))
  const roles = new Set(hosts.map(({ role }) => role))
  if (general.readWriteSplit === 'exclude_primary' && roles.has('primary') && roles.size === 1)
    problems.warn(
      generalPlace(scope, 'read_write_split'),
      'read_write_split = "exclude_primary" without a replica: the primary takes the reads',
    )
}

function checkSharded(scope: CheckScope): void {
  for (const { name, shards } of scope.databases) {
    const sharding = scope.sharding.get(name)
    if (shards.length < 2 || !sharding) continue
    const bare = sharding.tables.length === 0 && sharding.schemas.length === 0
    if (bare && sharding.otherTables === 'reference')
      scope.problems.warn(
        undefined,
        `database "${name}" has ${shards.length} shards and no sharded table: every table counts as a reference table`,
      )
  }
}

/** "ignore" would put rows where no query looks for them. */
function checkRewrite(scope: CheckScope): void {
  const entry = scope.entriesOf('rewrite').at(-1)
  for (const key of ['shard_key', 'split_inserts']) {
    if (entry?.values[key] === 'ignore')
      scope.problems.error(
        entry.placeOf(key),
        `rewrite.${key} = "ignore" would leave rows on the wrong shard; use "rewrite" or "error"`,
      )
  }
}

/** PgDog counts threads with this key, and its files hold it. */
function checkWorkers(scope: CheckScope): void {
  const place = scope
    .entriesOf('general')
    .find((entry) => entry.values['workers'] !== undefined)
    ?.placeOf('workers')
  if (place && scope.general.workersMode === 'single')
    scope.problems.warn(
      place,
      'workers are threads in PgDog: serve is one process unless workers_mode = "processes" or --workers says otherwise',
    )
}

/** Runs all of them. */
export function checkConfig(scope: CheckScope): void {
  checkTls(scope)
  checkNegotiation(scope)
  checkParser(scope)
  checkRoles(scope)
  checkSharded(scope)
  checkRewrite(scope)
  checkWorkers(scope)
}

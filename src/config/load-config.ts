/**
 * The configuration from its files, URLs and environment, checked as a whole.
 * Either everything is right, or one error names everything that is wrong. Reads files; opens no connection.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { present } from '../base/present.js'
import { engineError } from '../errors/engine-error.js'
import { checkConfig } from './check-config.js'
import { compileDatabases } from './compile/compile-databases.js'
import { compileFunctionRoutes } from './compile/compile-function-routes.js'
import {
  compileAdmin,
  compileDatabaseOptions,
  compileGeneral,
  ownDefaults,
} from './compile/compile-general.js'
import { compileHa } from './compile/compile-ha.js'
import { compileHba } from './compile/compile-hba.js'
import { compilePlugins } from './compile/compile-plugins.js'
import { compileSharding } from './compile/compile-sharding.js'
import { compileUsers } from './compile/compile-users.js'
import { type EnvironmentDefaults, readEnvironment } from './config-text.js'
import { readUrls } from './config-urls.js'
import { type Entry, withDefaults } from './keys/check-section.js'
import {
  multiTenantKeys,
  otelKeys,
  replicationKeys,
  rewriteKeys,
  tcpKeys,
  vaultKeys,
} from './keys/config-keys-sections.js'
import { withSettings } from './keys/set-keys.js'
import type { LoadedConfig, LoadOptions } from './loaded-config.js'
import { Problems } from './problems.js'
import { type FileKind, readEntries, readText } from './read-toml.js'
import { showConfig } from './show-config.js'

interface NamedFile {
  readonly path: string
  readonly kind: FileKind
}

/** The files to read: those named, and those of PgDog's names that are there. */
function filesOf(options: LoadOptions): NamedFile[] {
  const urls = (options.databaseUrls ?? []).length > 0
  const config =
    options.configPath ?? (existsSync('pgdog.toml') && !urls ? 'pgdog.toml' : undefined)
  const beside = config === undefined ? 'users.toml' : join(dirname(config), 'users.toml')
  const wanted =
    options.usersPath ?? (config !== undefined && existsSync(beside) ? beside : undefined)
  return [
    ...(config === undefined ? [] : [{ path: config, kind: 'pgdog.toml' as const }]),
    ...(wanted === undefined ? [] : [{ path: wanted, kind: 'users.toml' as const }]),
  ]
}

function compile(
  entries: readonly Entry[],
  environment: EnvironmentDefaults,
  files: readonly NamedFile[],
  problems: Problems,
): LoadedConfig {
  const entriesOf = (section: string) => entries.filter((entry) => entry.section === section)
  const databases = compileDatabases(entriesOf('databases'), problems)
  const fromFile = files.some(({ kind }) => kind === 'pgdog.toml')
  const hasReplica = databases.some(({ shards }) =>
    shards.some(({ hosts }) => hosts.some(({ role }) => role === 'replica')),
  )
  const general = compileGeneral(
    {
      written: entriesOf('general').at(-1),
      environment: environment.values.get('general') ?? {},
      fromFile,
      hasReplica,
    },
    problems,
  )
  const sharding = compileSharding(databases, entriesOf, problems)
  const databaseOptions = compileDatabaseOptions(databases, general, entriesOf)
  const users = compileUsers(entriesOf('users'), {
    general,
    databases,
    problems,
    hasAuthQuery: entriesOf('users').some((entry) => entry.values['auth_query'] !== undefined),
    hasVault: entriesOf('vault').length > 0,
  })
  const hba = compileHba(general, entriesOf('general').at(-1), problems)
  const admin = compileAdmin(entriesOf('admin'), databases, problems)
  const plugins = compilePlugins(entriesOf('plugins'), problems)
  const groups = compileHa(entriesOf, databases, problems)
  const { functionRoutes, ha } = compileFunctionRoutes(
    entriesOf('function_routes'),
    { databases, ha: groups },
    problems,
  )
  checkConfig({ general, databases, databaseOptions, sharding, entriesOf, problems })
  if (problems.failed) throw problems.toError()
  const written = (section: string) => entriesOf(section).at(-1)?.values
  const vault = written('vault')
  return present({
    general,
    databases,
    databaseOptions,
    sharding,
    users,
    admin,
    hba,
    rewrite: withDefaults(rewriteKeys, written('rewrite') ?? {}),
    tcp: withDefaults(tcpKeys, written('tcp') ?? {}),
    replication: withDefaults(replicationKeys, written('replication') ?? {}),
    otel: withDefaults(otelKeys, written('otel') ?? {}, environment.values.get('otel')),
    vault: vault === undefined ? undefined : withDefaults(vaultKeys, vault),
    plugins,
    ha,
    functionRoutes,
    multiTenantColumn: withDefaults(multiTenantKeys, written('multi_tenant') ?? {}).column,
    warnings: problems.warnings,
    files: files.map(({ path }) => path),
    shown: showConfig(entriesOf, environment, ownDefaults({ fromFile, hasReplica })),
  })
}

/**
 * Loads and checks a configuration.
 * @throws FILE_MISSING for a file that was named and cannot be read; CONFIG_INVALID with every problem in its detail; CONFIG_NO_DATABASE
 */
export function loadConfig(options: LoadOptions): LoadedConfig {
  const problems = new Problems()
  const files = filesOf(options)
  const entries = files.flatMap(({ path, kind }) =>
    readEntries(readText(path), path, kind, problems),
  )
  entries.push(...readUrls(options.databaseUrls ?? [], options.env, problems))
  const environment = readEnvironment(options.env, problems)
  const set = withSettings(entries, options.settings ?? new Map(), problems)
  const config = compile(set, environment, files, problems)
  if (config.databases.length === 0) throw engineError('CONFIG_NO_DATABASE')
  return config
}

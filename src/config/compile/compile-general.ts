/** [general] and the small sections: what was written, then the environment, then defaults; PgDog's old and doubled keys resolved. */

import { present } from '../../base/present.js'
import type { DatabaseTopology } from '../../topology/topology.js'
import { type Entry, withDefaults } from '../keys/check-section.js'
import { adminKeys } from '../keys/config-keys-databases.js'
import { omnishardedKeys, queryParserKeys } from '../keys/config-keys-sections.js'
import { type GeneralConfig, generalKeys } from '../keys/config-sections.js'
import type { AdminConfig, CrossShardWrites, DatabaseOptions } from '../loaded-config.js'
import type { Place, Problems } from '../problems.js'
import { nearest } from '../suggest.js'
import type { EntriesOf } from './compile-sharding.js'

/** What the general keys are made from. */
export interface GeneralSources {
  readonly written: Entry | undefined
  readonly environment: Readonly<Record<string, unknown>>
  /** Without a file our own defaults hold, with one PgDog's. */
  readonly fromFile: boolean
  readonly hasReplica: boolean
}

/** Defaults that differ from PgDog's, for a start without a file. */
export function ownDefaults(sources: Pick<GeneralSources, 'fromFile' | 'hasReplica'>) {
  if (sources.fromFile) return {}
  return {
    host: '127.0.0.1',
    load_balancing_strategy: 'round_robin',
    ...(sources.hasReplica ? { read_write_split: 'exclude_primary' } : {}),
  }
}

/** two_phase_commit is PgDog's word for part of cross_shard_writes. */
export function crossShardWrites(
  own: CrossShardWrites | undefined,
  twoPhase: boolean | undefined,
): CrossShardWrites | undefined {
  if (own !== undefined || twoPhase === undefined) return own
  return twoPhase ? 'two_phase' : 'error'
}

function checkWrites(general: GeneralConfig, place: (key: string) => Place, problems: Problems) {
  const { crossShardWrites: writes, twoPhaseCommit } = general
  const at = place('cross_shard_writes')
  if (writes === 'two_phase' && twoPhaseCommit === false)
    problems.error(at, 'cross_shard_writes = "two_phase" contradicts two_phase_commit = false')
  if (writes !== undefined && writes !== 'two_phase' && twoPhaseCommit === true)
    problems.error(at, `cross_shard_writes = "${writes}" contradicts two_phase_commit = true`)
  if (writes === 'best_effort')
    problems.warn(
      at,
      'cross_shard_writes = "best_effort": a failure during COMMIT leaves some shards committed',
    )
}

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'off']

/** RUST_LOG may hold a filter, `info,pgdog=debug`: its bare level counts. */
function logLevel(filter: string, place: Place | undefined, problems: Problems): string {
  const words = filter.split(',').map((word) => word.trim().toLowerCase())
  const level = words.find((word) => levels.includes(word))
  if (level !== undefined) return level
  const guess = nearest(filter, levels)
  const tail = guess === undefined ? '' : `; did you mean "${guess}"?`
  problems.error(place, `log_level must be one of ${levels.join(', ')}, not "${filter}"${tail}`)
  return 'info'
}

/** Shorter ones can be guessed. */
const LEAST_TOKEN = 16

/** Compiles [general]. */
export function compileGeneral(sources: GeneralSources, problems: Problems): GeneralConfig {
  const written = sources.written?.values ?? {}
  const defaults = { ...ownDefaults(sources), ...sources.environment }
  const general = withDefaults(generalKeys, written, defaults)
  const place = (key: string) => sources.written?.placeOf(key) ?? { file: 'environment' }
  checkWrites(general, place, problems)
  if (general.webToken !== undefined && general.webToken.length < LEAST_TOKEN)
    problems.error(place('web_token'), `web_token must have at least ${LEAST_TOKEN} characters`)
  const on = general.queryParserEnabled && written['query_parser'] === undefined
  return Object.freeze({
    ...general,
    logLevel: logLevel(general.logLevel, place('log_level'), problems),
    queryParser: on ? 'on' : general.queryParser,
    crossShardWrites: crossShardWrites(general.crossShardWrites, general.twoPhaseCommit),
  })
}

const consoles = ['pgdog', 'pgshard', 'pgbouncer']

/** [admin] of users.toml wins over that of pgdog.toml, whole. */
export function compileAdmin(
  entries: readonly Entry[],
  databases: readonly DatabaseTopology[],
  problems: Problems,
): AdminConfig {
  const entry = entries.at(-1)
  const values = withDefaults(adminKeys, entry?.values ?? {})
  const taken = databases.map(({ name }) => name)
  if (taken.includes(values.name))
    problems.error(
      entry?.placeOf('name'),
      `admin.name "${values.name}" is the name of a database too`,
    )
  const names = [values.name, ...consoles].filter((name, i, all) => all.indexOf(name) === i)
  return present({
    names: names.filter((name) => !taken.includes(name)),
    user: values.user,
    password: values.password,
  })
}

/** What a database has of its own beside hosts and shards. */
export function compileDatabaseOptions(
  databases: readonly DatabaseTopology[],
  general: GeneralConfig,
  entriesOf: EntriesOf,
): ReadonlyMap<string, DatabaseOptions> {
  const options = (name: string): DatabaseOptions => {
    const parsers = entriesOf('query_parsers')
      .map((entry) => withDefaults(queryParserKeys, entry.values))
      .filter((values) => values.database === name)
    const sticky = entriesOf('omnisharded_tables')
      .map((entry) => withDefaults(omnishardedKeys, entry.values))
      .filter((values) => values.database === name && values.sticky)
    return Object.freeze({
      queryParser: parsers.at(-1)?.level ?? general.queryParser,
      stickyTables: sticky.flatMap((values) => values.tables),
    })
  }
  return new Map(databases.map(({ name }) => [name, options(name)]))
}

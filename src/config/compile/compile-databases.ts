/** Entries of [[databases]] → topologies; refuses what would give wrong answers: gaps, twins, two primaries. */

import { present } from '../../base/present.js'
import type { DatabaseTopology, Host, Shard } from '../../topology/topology.js'
import { type Entry, withDefaults } from '../keys/check-section.js'
import { databaseKeys } from '../keys/config-keys-databases.js'
import type { ValuesOf } from '../keys/key-types.js'
import { type Problems, showPlace } from '../problems.js'

type DatabaseValues = ValuesOf<typeof databaseKeys>

function hostOf(values: DatabaseValues): Host {
  const { name, shard: _shard, databaseName, lbWeight, host, reshardingOnly, ...rest } = values
  return present({
    ...rest,
    host: host ?? '',
    database: databaseName ?? name ?? '',
    weight: lbWeight,
    reshardingOnly: reshardingOnly || undefined,
  })
}

interface Located {
  readonly host: Host
  readonly shard: number
  readonly entry: Entry
}

function checkTwins(name: string, located: readonly Located[], problems: Problems): void {
  const seen = new Map<string, Located>()
  for (const one of located) {
    const { host, port, database } = one.host
    const address = `${host}:${port}/${database}`
    const other = seen.get(address)
    if (other) {
      const where = showPlace(other.entry.place)
      problems.error(
        one.entry.placeOf('host'),
        `database "${name}" has the host ${address} twice (also ${where}); rows would be read twice`,
      )
    } else seen.set(address, one)
  }
}

function checkGaps(name: string, located: readonly Located[], problems: Problems): void {
  const numbers = new Set(located.map(({ shard }) => shard))
  const last = Math.max(...numbers)
  const missing = Array.from({ length: last }, (_, i) => i).filter((i) => !numbers.has(i))
  if (missing.length === 0) return
  const shown = missing.length > 5 ? `${missing.slice(0, 5).join(', ')}, …` : missing.join(', ')
  const highest = located.find(({ shard }) => shard === last)
  problems.error(
    highest?.entry.placeOf('shard'),
    `database "${name}" has a shard ${last} but no shard ${shown}; shards are numbered from 0 without gaps`,
  )
}

function checkRoles(name: string, shard: number, located: readonly Located[], problems: Problems) {
  const serving = located.filter(({ host }) => host.reshardingOnly !== true)
  const primaries = serving.filter(({ host }) => host.role === 'primary')
  const where = `shard ${shard} of database "${name}"`
  const [, second] = primaries
  if (second) problems.error(second.entry.placeOf('role'), `${where} has two primaries`)
  const auto = serving.filter(({ host }) => host.role === 'auto')
  if (auto.length > 0 && auto.length < serving.length)
    problems.warn(
      auto[0]?.entry.placeOf('role'),
      `${where} mixes role "auto" with fixed roles; roles are then not watched`,
    )
  if (auto.length === 0 && primaries.length === 0)
    problems.warn(located[0]?.entry.place, `${where} has no primary and takes no writes`)
}

function compileOne(name: string, located: readonly Located[], problems: Problems) {
  checkTwins(name, located, problems)
  checkGaps(name, located, problems)
  const numbers = [...new Set(located.map(({ shard }) => shard))].sort((a, b) => a - b)
  const shards = numbers.map((number): Shard => {
    const here = located.filter(({ shard }) => shard === number)
    checkRoles(name, number, here, problems)
    return Object.freeze({ number, hosts: Object.freeze(here.map(({ host }) => host)) })
  })
  return Object.freeze({ name, shards: Object.freeze(shards) })
}

/** Compiles all databases, in the order of their first entries. */
export function compileDatabases(
  entries: readonly Entry[],
  problems: Problems,
): readonly DatabaseTopology[] {
  const groups = new Map<string, Located[]>()
  for (const entry of entries) {
    const values = withDefaults(databaseKeys, entry.values)
    if (values.name === undefined || values.host === undefined) continue
    const group = groups.get(values.name) ?? []
    group.push({ host: hostOf(values), shard: values.shard, entry })
    groups.set(values.name, group)
  }
  return [...groups].map(([name, located]) => compileOne(name, located, problems))
}

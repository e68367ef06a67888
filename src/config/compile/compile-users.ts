/** Entries of [[users]] → users with their databases resolved; says who cannot get in. */
import { parseScramVerifier } from '../../auth/scram-verifier.js'
import { present } from '../../base/present.js'
import type { DatabaseTopology } from '../../topology/topology.js'
import { type Entry, withDefaults } from '../keys/check-section.js'
import { userKeys } from '../keys/config-keys-databases.js'
import type { GeneralConfig } from '../keys/config-sections.js'
import type { ValuesOf } from '../keys/key-types.js'
import type { User } from '../loaded-config.js'
import { type Problems, showPlace } from '../problems.js'
import { nearest } from '../suggest.js'
import { crossShardWrites } from './compile-general.js'

type UserValues = ValuesOf<typeof userKeys>

interface Scope {
  readonly general: GeneralConfig
  readonly databases: readonly DatabaseTopology[]
  readonly problems: Problems
  /** Some user looks others up. */
  readonly hasAuthQuery: boolean
  /** A section [vault] is written. */
  readonly hasVault: boolean
}

function databasesOf(values: UserValues, entry: Entry, scope: Scope): string[] {
  const known = scope.databases.map(({ name }) => name)
  if (values.allDatabases) return known
  const key = values.databases.length > 0 ? 'databases' : 'database'
  const named = [...values.databases, values.database].filter((name) => name !== '')
  if (named.length === 0)
    scope.problems.warn(entry.place, `user "${values.name}" names no database and cannot connect`)
  for (const name of named.filter((one) => !known.includes(one))) {
    const guess = nearest(name, known)
    const tail = guess === undefined ? '' : `; did you mean "${guess}"?`
    scope.problems.warn(
      entry.placeOf(key),
      `user "${values.name}": there is no database "${name}"${tail}`,
    )
  }
  return [...new Set(named.filter((name) => known.includes(name)))]
}

const external = ['rds_iam', 'azure_workload_identity', 'vault_dynamic', 'vault_static']

function checkServerAuth(values: UserValues, entry: Entry, scope: Scope): void {
  const { general, problems } = scope
  if (!external.includes(values.serverAuth)) return
  const place = entry.placeOf('server_auth')
  const auth = `server_auth "${values.serverAuth}" of user "${values.name}"`
  if (general.passthroughAuth !== 'disabled')
    problems.error(place, `${auth} needs passthrough_auth = "disabled"`)
  if (general.tlsVerify === 'disabled')
    problems.error(place, `${auth} needs TLS to the servers: set tls_verify`)
  if (!values.serverAuth.startsWith('vault_')) return
  if (values.serverVaultPath === undefined) problems.error(place, `${auth} needs server_vault_path`)
  if (!scope.hasVault) problems.error(place, `${auth} needs a section [vault]`)
}

function checkSecrets(
  values: UserValues,
  passwords: readonly string[],
  entry: Entry,
  scope: Scope,
) {
  const { general, problems, databases } = scope
  const authType = values.authType ?? general.authType
  const named = `user "${values.name}"`
  const hasOwnCredentials = databases.every(({ shards }) =>
    shards.every(({ hosts }) => hosts.every((host) => host.password !== undefined)),
  )
  if (values.passwordHash !== undefined && authType === 'md5')
    problems.error(
      entry.placeOf('password_hash'),
      `${named}: a SCRAM verifier cannot answer auth_type "md5"`,
    )
  if (values.passwordHash !== undefined && parseScramVerifier(values.passwordHash) === undefined)
    problems.error(
      entry.placeOf('password_hash'),
      `${named}: password_hash is not a SCRAM-SHA-256 verifier; make one with pgshard hash-password`,
    )
  if (
    values.passwordHash !== undefined &&
    values.serverPassword === undefined &&
    passwords.length === 0 &&
    !hasOwnCredentials
  )
    problems.warn(
      entry.placeOf('password_hash'),
      `${named} has a password_hash but no server_password; only servers that ask for none will do`,
    )
  const canEnter =
    authType === 'trust' ||
    passwords.length > 0 ||
    values.passwordHash !== undefined ||
    values.identity !== undefined ||
    scope.hasAuthQuery ||
    general.passthroughAuth !== 'disabled'
  if (!canEnter) problems.warn(entry.place, `${named} has no password and cannot log in`)
}

function compileOne(entry: Entry, scope: Scope): User | undefined {
  const values = withDefaults(userKeys, entry.values)
  const { general } = scope
  const {
    name,
    database: _,
    databases: __,
    allDatabases: ___,
    password,
    passwords: more,
    tlsClientCertificateRequired,
    twoPhaseCommit,
    twoPhaseCommitAuto: ____,
    crossShardDisabled,
    authType,
    ...rest
  } = values
  if (name === undefined) return undefined
  const passwords = [...new Set([...(password === undefined ? [] : [password]), ...more])]
  checkServerAuth(values, entry, scope)
  checkSecrets(values, passwords, entry, scope)
  const ownWrites = twoPhaseCommit === undefined ? general.crossShardWrites : undefined
  return present({
    ...rest,
    name,
    databases: databasesOf(values, entry, scope),
    passwords,
    authType: authType ?? general.authType,
    clientCertificateRequired:
      tlsClientCertificateRequired ?? general.tlsClientCaCertificate !== undefined,
    crossShardDisabled: crossShardDisabled ?? general.crossShardDisabled,
    crossShardWrites: crossShardWrites(ownWrites, twoPhaseCommit),
  })
}

/** Compiles all users. Two entries of one name for one database are an error: which password holds would be chance. */
export function compileUsers(entries: readonly Entry[], scope: Scope): readonly User[] {
  const seen = new Map<string, Entry>()
  const users = entries.flatMap((entry) => {
    const user = compileOne(entry, scope)
    for (const database of user?.databases ?? []) {
      const key = JSON.stringify([user?.name, database])
      const other = seen.get(key)
      if (other)
        scope.problems.error(
          entry.place,
          `user "${user?.name}" of database "${database}" stands here and at ${showPlace(other.place)}`,
        )
      else seen.set(key, entry)
    }
    return user ?? []
  })
  if (scope.general.passthroughAuth === 'disabled') {
    for (const { name } of scope.databases) {
      if (!users.some((user) => user.databases.includes(name)))
        scope.problems.warn(undefined, `database "${name}" has no user; nobody can connect to it`)
    }
  }
  return users
}

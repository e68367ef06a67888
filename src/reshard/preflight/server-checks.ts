/** Checks of the servers of both sides: facts in, problems out. Pure. Each problem says how it is mended. */
import { quoteName } from '../../pg/sql-names.js'
import { error, type Problem, warning } from './problem.js'
import type { ServerFacts } from './server-facts.js'

const MIN_VERSION = 150_000
const OLD_TRANSACTION_S = 300

/** Slots a source shard: one for the stream, one that is temporary, for a snapshot of the copy or of verify. */
const SLOTS_A_SOURCE = 2

export interface ServerUse {
  /** Shards of this side on the same server, which share its slots and connections. */
  readonly shardsHere: number
  /** Connections that the move opens for each of these shards. */
  readonly connections: number
}

export function checkSource(where: string, facts: ServerFacts, use: ServerUse): Problem[] {
  return [
    ...checkVersion(where, facts),
    ...checkSlots(where, facts, SLOTS_A_SOURCE * use.shardsHere),
    ...checkSourceUser(where, facts),
    ...checkConnections(where, facts, use),
    ...checkOpenTransactions(where, facts),
    ...checkKeptWal(where, facts),
    ...checkContents(where, facts),
  ]
}

function checkVersion(where: string, facts: ServerFacts): Problem[] {
  const found: Problem[] = []
  if (facts.version < MIN_VERSION) {
    const name = Math.floor(facts.version / 10_000)
    found.push(
      error(where, `is PostgreSQL ${name}, older than 15`, 'move to PostgreSQL 15 or newer first'),
    )
  }
  if (facts.isStandby) found.push(error(where, 'is a standby', 'name the primary in [[databases]]'))
  return found
}

function checkSlots(where: string, facts: ServerFacts, needed: number): Problem[] {
  const found: Problem[] = []
  if (facts.walLevel !== 'logical') {
    const mend = facts.isManaged
      ? 'turn logical replication on in the settings of the managed server (rds.logical_replication, cloudsql.logical_decoding …) and restart it'
      : 'ALTER SYSTEM SET wal_level = logical; then restart the server'
    found.push(error(where, `wal_level is ${facts.walLevel}`, mend))
  }
  if (facts.freeSlots < needed) {
    const wanted = facts.maxSlots + needed - facts.freeSlots
    found.push(
      error(
        where,
        `${facts.freeSlots} replication slots are free, ${needed} are needed`,
        `ALTER SYSTEM SET max_replication_slots = ${wanted} and restart, or pg_drop_replication_slot() of those that nobody uses`,
      ),
    )
  }
  if (facts.freeSenders < needed) {
    const wanted = facts.maxSenders + needed - facts.freeSenders
    found.push(
      error(
        where,
        `${facts.freeSenders} walsenders are free, ${needed} are needed`,
        `ALTER SYSTEM SET max_wal_senders = ${wanted}; then restart the server`,
      ),
    )
  }
  return found
}

function checkSourceUser(where: string, facts: ServerFacts): Problem[] {
  const found: Problem[] = []
  const user = quoteName(facts.user)
  if (!facts.mayReplicate) {
    const mend = facts.isManaged
      ? `GRANT rds_replication TO ${user} (or what the provider calls it)`
      : `ALTER ROLE ${user} REPLICATION`
    found.push(error(where, `user ${facts.user} may not replicate`, mend))
  }
  if (!facts.mayCreate) {
    found.push(
      error(
        where,
        `user ${facts.user} may not create a publication`,
        `GRANT CREATE ON DATABASE ${quoteName(facts.database)} TO ${user}`,
      ),
    )
  }
  return found
}

function checkConnections(where: string, facts: ServerFacts, use: ServerUse): Problem[] {
  const needed = use.connections * use.shardsHere
  if (facts.freeConnections >= needed) return []
  return [
    error(
      where,
      `${facts.freeConnections} connections are free, a move opens up to ${needed}`,
      `ALTER SYSTEM SET max_connections = ${facts.maxConnections + needed - facts.freeConnections} and restart, or fewer --jobs`,
    ),
  ]
}

/** A slot is not ready before transactions that are open have ended. */
function checkOpenTransactions(where: string, facts: ServerFacts): Problem[] {
  const found = facts.preparedTransactions.map(({ gid, seconds }) =>
    warning(
      where,
      `prepared transaction ${gid} is open for ${seconds} s: no slot is ready before it ends`,
      `COMMIT PREPARED '${gid}' or ROLLBACK PREPARED '${gid}'`,
    ),
  )
  for (const { pid, user, seconds } of facts.oldTransactions) {
    if (seconds < OLD_TRANSACTION_S) continue
    found.push(
      warning(
        where,
        `pid ${pid} of ${user} is in a transaction for ${seconds} s: no slot is ready before it ends`,
        `let it end, or SELECT pg_terminate_backend(${pid})`,
      ),
    )
  }
  return found
}

/** Settings by which a server throws a slot away by itself. */
function checkKeptWal(where: string, facts: ServerFacts): Problem[] {
  const found: Problem[] = []
  if (facts.maxSlotWalKeepMb >= 0) {
    found.push(
      warning(
        where,
        `max_slot_wal_keep_size is ${facts.maxSlotWalKeepMb} MB: beyond it the server invalidates the slot and the move must begin anew`,
        'give --max-wal-kept a smaller size, so that the move stops by itself before, or ALTER SYSTEM SET max_slot_wal_keep_size = -1',
      ),
    )
  }
  if (facts.idleSlotTimeoutS > 0) {
    found.push(
      warning(
        where,
        `idle_replication_slot_timeout is ${facts.idleSlotTimeoutS} s: a run that is down for so long cannot be resumed`,
        'ALTER SYSTEM SET idle_replication_slot_timeout = 0; SELECT pg_reload_conf()',
      ),
    )
  }
  return found
}

/** What a source holds that is not moved. */
function checkContents(where: string, facts: ServerFacts): Problem[] {
  const found: Problem[] = []
  if (facts.largeObjects > 0) {
    found.push(
      error(
        where,
        `holds ${facts.largeObjects} large objects, which are not moved`,
        'move them to a bytea column, or remove them with lo_unlink',
      ),
    )
  }
  for (const name of facts.materializedViews) {
    found.push(
      warning(
        where,
        `materialized view ${name} is made empty on the targets`,
        `REFRESH MATERIALIZED VIEW ${name} on each target after the cutover`,
      ),
    )
  }
  for (const name of facts.inheriting) {
    found.push(
      error(
        name,
        'takes part in table inheritance, which is not moved today',
        'make it a plain table: ALTER TABLE … NO INHERIT …',
      ),
    )
  }
  for (const name of facts.unreadableSequences) {
    found.push(
      error(
        where,
        `user ${facts.user} may not read sequence ${name}`,
        `GRANT SELECT ON SEQUENCE ${name} TO ${quoteName(facts.user)}`,
      ),
    )
  }
  return found
}

export function checkTarget(
  where: string,
  facts: ServerFacts,
  source: ServerFacts,
  use: ServerUse,
): Problem[] {
  return [
    ...checkTargetServer(where, facts, source),
    ...checkConnections(where, facts, use),
    ...checkExtensions(where, facts, source),
    ...source.usedRoles
      .filter((role) => !facts.roles.includes(role))
      .map((role) =>
        error(where, `role "${role}" does not exist`, `CREATE ROLE ${quoteName(role)}`),
      ),
    ...checkTwoPhase(where, facts, source),
  ]
}

/** What is made on a target is given to the owner that it has on the source, who must be able to have it. */
export function checkOwners(where: string, facts: ServerFacts, source: ServerFacts): Problem[] {
  const user = quoteName(facts.user)
  const isThere = (role: string): boolean => facts.roles.includes(role)
  const closed = source.owners
    .filter((role) => isThere(role) && !facts.settableRoles.includes(role))
    .map((role) => {
      const what = `user ${facts.user} may not SET ROLE to "${role}", who owns tables or other objects of the source`
      return error(where, what, `GRANT ${quoteName(role)} TO ${user}`)
    })
  const homeless = source.ownersInPublic
    .filter((role) => isThere(role) && !facts.creatorsInPublic.includes(role))
    .map((role) => {
      const what = `role "${role}", who owns objects in schema public of the source, may not create there`
      return error(where, what, `GRANT CREATE ON SCHEMA public TO ${quoteName(role)}`)
    })
  return [...closed, ...homeless]
}

function checkTargetServer(where: string, facts: ServerFacts, source: ServerFacts): Problem[] {
  const found: Problem[] = []
  if (Math.floor(facts.version / 10_000) < Math.floor(source.version / 10_000)) {
    found.push(
      error(
        where,
        'is of an older major version than the source',
        'use servers of the same or a newer version',
      ),
    )
  }
  if (facts.isStandby) found.push(error(where, 'is a standby', 'name the primary in [[databases]]'))
  if (!facts.mayCreate) {
    found.push(
      error(
        where,
        `user ${facts.user} may not create schemas`,
        `GRANT CREATE ON DATABASE ${quoteName(facts.database)} TO ${quoteName(facts.user)}`,
      ),
    )
  }
  if (facts.encoding !== source.encoding) {
    found.push(
      error(
        where,
        `has encoding ${facts.encoding}, the source ${source.encoding}`,
        `DROP DATABASE ${quoteName(facts.database)}; CREATE DATABASE ${quoteName(facts.database)} ENCODING '${source.encoding}' TEMPLATE template0`,
      ),
    )
  }
  return found
}

function checkExtensions(where: string, facts: ServerFacts, source: ServerFacts): Problem[] {
  return source.extensions.flatMap(({ name, version }): Problem[] => {
    const there = facts.availableExtensions.find((extension) => extension.name === name)
    if (!there) {
      const what = `extension "${name}" is not available`
      return [error(where, what, 'install its package on that server')]
    }
    if (there.versions.includes(version)) return []
    return [
      warning(
        where,
        `extension "${name}" is of version ${version} on the source and ${there.versions.join(', ')} here`,
        'see its release notes for types that are stored or printed in another way',
      ),
    ]
  })
}

/** What transactions over several shards need of the new side. */
function checkTwoPhase(where: string, facts: ServerFacts, source: ServerFacts): Problem[] {
  if (facts.maxPreparedTransactions > 0 || source.maxPreparedTransactions === 0) return []
  return [
    warning(
      where,
      `max_prepared_transactions is 0, the source has ${source.maxPreparedTransactions}: no two-phase commit over the new shards`,
      `ALTER SYSTEM SET max_prepared_transactions = ${source.maxPreparedTransactions}; then restart the server`,
    ),
  ]
}

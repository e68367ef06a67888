/** Takes the way back away: slots and publications of the new side, the login of the old one. Idempotent. */
import type { Clock } from '../../base/clock.js'
import { adminQuery } from '../../pg/admin-query.js'
import { quoteLiteral, quoteName } from '../../pg/sql-names.js'
import { dropSlot } from '../../replication/slot.js'
import type { JournalObject } from '../journal/journal.js'
import { type ReshardSide, withShard } from '../side.js'

export async function dropWayBack(
  objects: readonly JournalObject[],
  sides: { readonly source: ReshardSide; readonly target: ReshardSide },
  clock: Clock,
  onGone: (object: JournalObject) => Promise<void>,
): Promise<void> {
  for (const object of objects) {
    const { kind, side, shard, name } = object
    const server = sides[side].shards[shard]
    const isOurs = side === 'target' && (kind === 'slot' || kind === 'publication')
    if (!server || !(isOurs || kind === 'role')) continue
    await withShard(server, async (client) => {
      if (kind === 'slot') await dropSlot(client, name, clock)
      else if (kind === 'role') await adminQuery(client, dropRoleSql(name))
      else await adminQuery(client, `DROP PUBLICATION IF EXISTS ${quoteName(name)}`)
    })
    await onGone(object)
  }
}

/** Rights of this database go; the role itself with those of the last one of its server. */
const dropRoleSql = (role: string): string => `
DO $drop$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${quoteLiteral(role)}) THEN RETURN; END IF;
  IF NOT pg_has_role(current_user, ${quoteLiteral(role)}, 'USAGE') THEN
    EXECUTE 'GRANT ${quoteName(role)} TO ' || quote_ident(current_user);
  END IF;
  DROP OWNED BY ${quoteName(role)};
  BEGIN
    REVOKE SET ON PARAMETER session_replication_role FROM ${quoteName(role)};
    DROP ROLE ${quoteName(role)};
  EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege THEN NULL;
  END;
END $drop$`

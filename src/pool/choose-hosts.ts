/** Which hosts of a shard may take a write or a read, by role and ban. Says nothing of their order. */
import type { ReadWriteSplit } from './definition.js'
import type { KnownRole } from './host-group.js'

export interface ChoosableHost {
  readonly role: KnownRole
  readonly isBanned: boolean
}

/** Where writes go; roles of `auto` hosts name one at most. A ban keeps reads away, not writes: there is no other. */
export const primaryAmong = <H extends ChoosableHost>(hosts: readonly H[]): H | undefined =>
  hosts.find((host) => host.role === 'primary')

/** Where reads may go. A host that was replaced as primary shows rows that nobody else has: never. */
export function readersAmong<H extends ChoosableHost>(
  hosts: readonly H[],
  split: ReadWriteSplit,
): readonly H[] {
  const usable = hosts.filter((host) => !host.isBanned && host.role !== 'stale')
  const primary = primaryAmong(usable)
  const known = usable.filter((host) => host.role === 'replica')
  // Before the first answer nothing is known of any: they can at least be asked.
  const replicas = known.length > 0 || primary ? known : usable
  const withPrimary = primary ? [...replicas, primary] : replicas
  switch (split) {
    case 'include_primary':
      return withPrimary
    case 'exclude_primary':
      return replicas.length > 0 ? replicas : withPrimary
    case 'include_primary_if_replica_banned': {
      const anyBanned = hosts.some((host) => host.isBanned)
      return anyBanned || replicas.length === 0 ? withPrimary : replicas
    }
    case 'prefer_primary':
      return primary ? [primary] : replicas
  }
}

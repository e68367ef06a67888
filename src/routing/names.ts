/** What names mean to one session: its search path and its temporary objects. */
import type { RouteContext } from '../plan/plan.js'

export interface Names {
  readonly searchPath: readonly string[]
  /** Temporary relations of the session, with the shard on which each stands. */
  readonly temporary: ReadonlyMap<string, number> | undefined
}

const samePath = (a: readonly string[], b: readonly string[]): boolean =>
  a === b || (a.length === b.length && a.every((schema, i) => schema === b[i]))

export const namesOf = ({ searchPath, temporary }: RouteContext): Names => ({
  searchPath,
  temporary,
})

/** Temporary objects come and go: what was compiled with some is not kept. */
export const sameNames = (names: Names | undefined, context: RouteContext): boolean =>
  names !== undefined &&
  names.temporary === undefined &&
  context.temporary === undefined &&
  samePath(names.searchPath, context.searchPath)

/** The shard that a name made by a function may stand on; undefined when it cannot be said. */
export function onlyTemporaryShard(names: Names): number | undefined {
  const shards = new Set(names.temporary?.values())
  return shards.size === 1 ? [...shards][0] : undefined
}

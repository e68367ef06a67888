/** Where rows belong that leave the sharding key to its default: as NULL, or as a constant that can be read. */
import type { KeyPlacer } from './key-placer.js'
import type { ShardId } from './shard-set.js'

/** The key's column as far as its default goes. */
interface DefaultingColumn {
  /** Text of the default expression. */
  readonly default?: string | undefined
  readonly identity?: unknown
  readonly generated?: unknown
}

const constantDefault = /^(?:'((?:[^']|'')*)'(?:::[\w ]+)?|(-?\d+))$/

/** Undefined: nobody knows the shard. @throws KEY_UNMAPPED */
export function placeDefault(column: DefaultingColumn, placer: KeyPlacer): ShardId | undefined {
  if (column.identity || column.generated) return undefined
  if (column.default === undefined) return placer.ofNull()
  const constant = constantDefault.exec(column.default)
  if (constant === null) return undefined
  return placer.ofString(constant[1]?.replaceAll("''", "'") ?? (constant[2] as string))
}

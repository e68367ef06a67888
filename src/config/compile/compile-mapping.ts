/** `[[sharded_tables.mapping]]` → a list or range placement; refuses overlaps, values of the wrong type and shards that do not exist. */

import type { KeyType } from '../../datum/key-type.js'
import type { ListPlacement, Placement, RangePlacement } from '../../sharding/sharded-table.js'
import { type ComparableKey, comparableKey, compareKeys } from '../key-order.js'
import type { Entry } from '../keys/check-section.js'
import { type Place, type Problems, showPlace } from '../problems.js'

/** One entry, from a table's mapping or from [[sharded_mappings]]. */
export interface MappingEntry {
  readonly values?: readonly string[]
  readonly start?: string
  readonly end?: string
  readonly shard: number
  readonly entry: Entry
}

interface Scope {
  readonly keyType: KeyType
  readonly shardCount: number
  readonly problems: Problems
}

const forms: Partial<Record<KeyType, string>> = {
  date: ' (write 2024-01-31)',
  timestamp: ' (write 2024-01-31 12:00:00)',
  timestamptz: ' (write 2024-01-31 12:00:00+00, with a zone)',
}

function readKey(scope: Scope, text: string, place: Place): ComparableKey | undefined {
  const key = comparableKey(scope.keyType, text)
  if (key === undefined) {
    const form = forms[scope.keyType] ?? ''
    scope.problems.error(place, `"${text}" is not a ${scope.keyType}${form}`)
  }
  return key
}

export function checkShard(scope: Omit<Scope, 'keyType'>, shard: number, place: Place): void {
  if (shard < scope.shardCount) return
  const shards =
    scope.shardCount === 1
      ? '1 shard, 0'
      : `${scope.shardCount} shards, 0 to ${scope.shardCount - 1}`
  scope.problems.error(place, `there is no shard ${shard}: the database has ${shards}`)
}

function checkLists(scope: Scope, lists: readonly MappingEntry[]): void {
  const seen = new Map<string, MappingEntry>()
  for (const list of lists) {
    const place = list.entry.placeOf('values')
    for (const text of list.values ?? []) {
      const key = readKey(scope, text, place)
      if (key === undefined) continue
      // Equal decimals of different scale are rare enough to be compared pairwise by their text.
      const name = typeof key === 'object' ? decimalName(key) : String(key)
      const other = seen.get(name)
      if (other && other.shard !== list.shard)
        scope.problems.error(
          place,
          `value "${text}" is on shard ${list.shard} here and on shard ${other.shard} at ${showPlace(other.entry.placeOf('values'))}`,
        )
      seen.set(name, list)
    }
  }
}

function decimalName(key: { digits: bigint; scale: number }): string {
  let { digits, scale } = key
  while (digits !== 0n && digits % 10n === 0n) {
    digits /= 10n
    scale--
  }
  return digits === 0n ? '0' : `${digits}e${-scale}`
}

interface Range {
  readonly start: ComparableKey | undefined
  readonly end: ComparableKey | undefined
  readonly given: MappingEntry
}

const startsAfter = (a: Range, b: Range): number => {
  if (a.start === undefined || b.start === undefined)
    return (a.start === undefined ? 0 : 1) - (b.start === undefined ? 0 : 1)
  return compareKeys(a.start, b.start)
}

const showRange = (range: MappingEntry): string =>
  `[${range.start ?? 'open'}, ${range.end ?? 'open'})`

function readRange(scope: Scope, given: MappingEntry): Range | undefined {
  const start =
    given.start === undefined
      ? undefined
      : readKey(scope, given.start, given.entry.placeOf('start'))
  const end =
    given.end === undefined ? undefined : readKey(scope, given.end, given.entry.placeOf('end'))
  if ((given.start === undefined) !== (start === undefined)) return undefined
  if ((given.end === undefined) !== (end === undefined)) return undefined
  if (start !== undefined && end !== undefined && compareKeys(start, end) >= 0) {
    scope.problems.error(given.entry.placeOf('start'), `range ${showRange(given)} is empty`)
    return undefined
  }
  return { start, end, given }
}

function checkRanges(scope: Scope, given: readonly MappingEntry[]): void {
  const ranges = given.flatMap((one) => readRange(scope, one) ?? []).sort(startsAfter)
  ranges.forEach((range, i) => {
    const before = ranges[i - 1]
    if (!before) return
    const apart =
      before.end !== undefined &&
      range.start !== undefined &&
      compareKeys(before.end, range.start) <= 0
    if (apart) return
    scope.problems.error(
      range.given.entry.placeOf('start'),
      `range ${showRange(range.given)} overlaps ${showRange(before.given)} at ${showPlace(before.given.entry.placeOf('start'))}`,
    )
  })
}

/** What the keys of an entry make of it, in the words of [[sharded_mappings]]. */
function kindOf({ values, start, end }: MappingEntry): 'list' | 'range' | 'default' {
  if (values !== undefined) return 'list'
  return (start ?? end) === undefined ? 'default' : 'range'
}

/** A kind that is written must be what the other keys say. */
function checkKind(scope: Scope, given: MappingEntry): void {
  const { kind } = given.entry.values
  const own = kindOf(given)
  if (kind === undefined || kind === own) return
  const keys = { list: 'values', range: 'start or end', default: 'a shard only' }[own]
  const what = `kind = "${kind}" contradicts the entry, which has ${keys} (kind = "${own}")`
  scope.problems.error(given.entry.placeOf('kind'), what)
}

function onlyFallback(scope: Scope, fallbacks: readonly MappingEntry[]): number | undefined {
  const [first, second] = fallbacks
  if (second)
    scope.problems.error(
      second.entry.place,
      'a mapping has one entry with a shard only; this is the second',
    )
  return first?.shard
}

/** Compiles a mapping of at least one entry. */
export function compileMapping(entries: readonly MappingEntry[], scope: Scope): Placement {
  const ofKind = (kind: string) => entries.filter((one) => kindOf(one) === kind)
  const [lists, ranges, fallbacks] = [ofKind('list'), ofKind('range'), ofKind('default')]
  for (const one of entries) {
    checkShard(scope, one.shard, one.entry.placeOf('shard'))
    checkKind(scope, one)
  }
  for (const one of lists) {
    if ((one.start ?? one.end) !== undefined)
      scope.problems.error(one.entry.place, 'an entry has values, or start and end, not both')
  }
  const fallback = onlyFallback(scope, fallbacks)
  const rest = fallback === undefined ? {} : { fallback }
  checkLists(scope, lists)
  checkRanges(scope, ranges)
  const asRanges: RangePlacement['entries'] = ranges.map(({ start, end, shard }) => ({
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
    shard,
  }))
  if (lists.length === 0 && ranges.length > 0) return { kind: 'range', entries: asRanges, ...rest }
  // A value that is listed is found there, whatever range it lies in.
  const placement: ListPlacement = {
    kind: 'list',
    entries: lists.map(({ values, shard }) => ({ values: values ?? [], shard })),
    ...(ranges.length > 0 ? { ranges: asRanges } : {}),
    ...rest,
  }
  return placement
}

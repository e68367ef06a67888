/**
 * Holds what was written against the table of keys: unknown keys, wrong types, unknown words, missing keys.
 * Collects problems and goes on; what is wrong is left out of the entry.
 */

import { type Place, type Problems, showPlace } from '../problems.js'
import { nearest } from '../suggest.js'
import { effectOf, type SectionDefinition, sectionNamed } from './config-sections.js'
import {
  describeType,
  type KeyDefinition,
  type KeyTable,
  outputName,
  type ValuesOf,
} from './key-types.js'
import { refusalReasons } from './refused-keys.js'

/** One table as written: values by TOML key, checked and normalised; only those that were written. */
export interface Entry {
  readonly section: string
  readonly values: Readonly<Record<string, unknown>>
  readonly place: Place
  /** Where a key was written; the table's place when it was not. */
  placeOf(key: string): Place
}

/** Finds the line of a path below the table. */
export type FindPlace = (path: readonly (string | number)[]) => Place

/** The greatest number that PgDog writes for "unlimited": Int64's. */
const unlimitedInteger = 9_223_372_036_854_775_807n
const durations = new Set(['milliseconds', 'seconds', 'bytes', 'integer'])

/** A scalar of a mapping in the text form of its type. */
function keyText(raw: unknown): string {
  return raw instanceof Date ? raw.toISOString().replace('T', ' ') : String(raw)
}

function normalise(definition: KeyDefinition, raw: unknown): unknown {
  if (definition.type === 'value') return keyText(raw)
  if (definition.type === 'values') return (raw as unknown[]).map(keyText)
  return raw
}

/** Integers beyond 2^53 come as bigint; the only sensible one is "unlimited". */
function widen(definition: KeyDefinition, raw: unknown): unknown {
  if (!durations.has(definition.type)) return raw
  if (raw === Number.POSITIVE_INFINITY) return raw
  return typeof raw === 'bigint' && raw === unlimitedInteger ? Number.POSITIVE_INFINITY : raw
}

function showValue(definition: KeyDefinition, raw: unknown): string {
  if (definition.secret) return 'the value given'
  if (typeof raw === 'string') return JSON.stringify(raw)
  if (raw instanceof Date) return raw.toISOString()
  if (typeof raw !== 'object' || raw === null) return String(raw)
  return Array.isArray(raw) ? 'a list' : 'a table'
}

function wrongValue(key: string, definition: KeyDefinition, raw: unknown): string {
  const guess =
    definition.values && typeof raw === 'string' ? nearest(raw, definition.values) : undefined
  const tail = guess === undefined ? '' : `; did you mean "${guess}"?`
  return `${key} must be ${describeType(definition)}, not ${showValue(definition, raw)}${tail}`
}

/** Checks one value. undefined: a problem was noted. */
export function checkValue(
  key: string,
  definition: KeyDefinition,
  raw: unknown,
  place: Place,
  problems: Problems,
): unknown {
  const wide = widen(definition, raw)
  if (wide !== Number.POSITIVE_INFINITY && !definition.schema.safeParse(wide).success) {
    problems.error(place, wrongValue(key, definition, raw))
    return undefined
  }
  return normalise(definition, wide)
}

function unknownKey(
  section: SectionDefinition,
  key: string,
  place: Place,
  problems: Problems,
): void {
  const guess = nearest(key, Object.keys(section.keys))
  const tail = guess === undefined ? '' : `; did you mean "${guess}"?`
  const message = `unknown key "${key}" in ${bracketed(section)}${tail}`
  if (section.lenient) problems.warn(place, `${message} (ignored, as PgDog does)`)
  else problems.error(place, message)
}

export function bracketed(section: Pick<SectionDefinition, 'name' | 'list'>): string {
  return section.list ? `[[${section.name}]]` : `[${section.name}]`
}

const reasonOf = (section: SectionDefinition, key: string): string => {
  const reason = refusalReasons[`${section.name}.${key}`]
  return reason === undefined ? '' : `: ${reason}`
}

/** Says of a key that was written, in a file or in the environment, when it is refused or not needed. */
export function tellEffect(
  section: SectionDefinition,
  key: string,
  definition: KeyDefinition,
  place: Place,
  problems: Problems,
  value: unknown,
): void {
  const effect = effectOf(section.name, key, definition)
  const name = section.name === 'general' ? key : `${section.name}.${key}`
  if (effect === 'refused' && value !== definition.fallback)
    problems.error(place, `${name} is not supported yet${reasonOf(section, key)}`)
  if (effect === 'unused') problems.warn(place, `${name} is not used: ${definition.unused}`)
}

function checkTables(
  section: SectionDefinition,
  key: string,
  raw: unknown,
  find: FindPlace,
  problems: Problems,
): readonly Entry[] {
  const below = sectionNamed(`${section.name}.${key}`)
  return (raw as unknown[]).flatMap((table, i) => {
    const findBelow: FindPlace = (path) => find([key, i, ...path])
    if (isTable(table)) return [checkEntry(below, table, findBelow, problems)]
    problems.error(findBelow([]), `${key} must be a list of tables`)
    return []
  })
}

export function isTable(raw: unknown): raw is Record<string, unknown> {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw) && !(raw instanceof Date)
}

/** The definition of a key as written, with its own name when an alias was. */
function definitionOf(keys: KeyTable, written: string): [string, KeyDefinition] | undefined {
  const own = Object.hasOwn(keys, written) ? keys[written] : undefined
  if (own) return [written, own]
  return Object.entries(keys).find(([, definition]) => definition.alias === written)
}

/** Checks one table of a section. Never throws for what a user can write. */
export function checkEntry(
  section: SectionDefinition,
  table: Readonly<Record<string, unknown>>,
  find: FindPlace,
  problems: Problems,
): Entry {
  const values: Record<string, unknown> = {}
  const places = new Map<string, Place>()
  const place = find([])
  for (const [written, raw] of Object.entries(table)) {
    const at = find([written])
    const found = definitionOf(section.keys, written)
    if (!found) {
      unknownKey(section, written, at, problems)
      continue
    }
    const [key, definition] = found
    if (places.has(key)) {
      const other = showPlace(places.get(key) ?? place)
      problems.error(at, `${written} and ${key} (${other}) are one key; keep one`)
    }
    places.set(key, at)
    const checked = checkValue(written, definition, raw, at, problems)
    if (checked === undefined) continue
    values[key] =
      definition.type === 'tables' ? checkTables(section, key, checked, find, problems) : checked
    tellEffect(section, key, definition, at, problems, checked)
  }
  for (const [key, definition] of Object.entries(section.keys)) {
    if (definition.required && !places.has(key))
      problems.error(place, `${bracketed(section)} needs the key "${key}"`)
  }
  return { section: section.name, values, place, placeOf: (key) => places.get(key) ?? place }
}

/** What was written with the defaults of the rest, under the names that code uses. */
export function withDefaults<T extends KeyTable>(
  keys: T,
  written: Readonly<Record<string, unknown>>,
  defaults: Readonly<Record<string, unknown>> = {},
): ValuesOf<T> {
  const values: Record<string, unknown> = {}
  for (const [key, definition] of Object.entries(keys)) {
    values[outputName(key, definition.unit)] = written[key] ?? defaults[key] ?? definition.fallback
  }
  return Object.freeze(values) as ValuesOf<T>
}

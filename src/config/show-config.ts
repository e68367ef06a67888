/** The configuration for people: every key with its value and what gave it, secrets hidden. */

import type { EnvironmentDefaults } from './config-text.js'
import type { Entry } from './keys/check-section.js'
import { configSections, type SectionDefinition } from './keys/config-sections.js'
import type { KeyDefinition } from './keys/key-types.js'
import type { ShownKey, ShownSection, ShownValue } from './loaded-config.js'
import { showPlace } from './problems.js'

export const hidden = '(hidden)'

function shownValue(definition: KeyDefinition, value: unknown): ShownValue {
  if (value === undefined) return null
  const empty = Array.isArray(value) && value.length === 0
  if (definition.secret && !empty) return hidden
  if (value === Number.POSITIVE_INFINITY) return 'unlimited'
  if (definition.type === 'tables') return (value as Entry[]).map((entry) => entry.values)
  return value as ShownValue
}

/** The default of a key as `config show` gives it, and whether a new value counts without a restart. */
export function keyHabits(
  section: string,
  key: string,
): { readonly fallback: ShownValue; readonly isReloadable: boolean } {
  const definition = configSections.find(({ name }) => name === section)?.keys[key]
  if (!definition) return { fallback: null, isReloadable: false }
  return {
    fallback: shownValue(definition, definition.fallback),
    isReloadable: definition.takesEffect !== 'restart',
  }
}

function shownKeys(
  section: SectionDefinition,
  entry: Entry | undefined,
  environment: EnvironmentDefaults,
  defaults: Readonly<Record<string, unknown>>,
): ShownKey[] {
  const fromEnv = environment.values.get(section.name) ?? {}
  const keys: ShownKey[] = []
  for (const [key, definition] of Object.entries(section.keys)) {
    const written = entry?.values[key]
    // Of an entry in a list only what was written is worth a line.
    if (section.list && written === undefined) continue
    const name = environment.names.get(`${section.name}.${key}`)
    let source = 'default'
    if (written !== undefined && entry) source = showPlace(entry.placeOf(key))
    else if (name !== undefined) source = `environment ${name}`
    const value = written ?? fromEnv[key] ?? defaults[key] ?? definition.fallback
    keys.push({ key, value: shownValue(definition, value), source })
  }
  return keys
}

/** All sections in the order of the reference; lists only where they have entries. */
export function showConfig(
  entriesOf: (section: string) => readonly Entry[],
  environment: EnvironmentDefaults,
  generalDefaults: Readonly<Record<string, unknown>>,
): readonly ShownSection[] {
  return configSections.flatMap((section): ShownSection[] => {
    if (section.name.includes('.')) return []
    const entries = entriesOf(section.name)
    if (section.list)
      return entries.map((entry, index) => ({
        section: section.name,
        index,
        keys: shownKeys(section, entry, environment, {}),
      }))
    const defaults = section.name === 'general' ? generalDefaults : {}
    return [
      { section: section.name, keys: shownKeys(section, entries.at(-1), environment, defaults) },
    ]
  })
}

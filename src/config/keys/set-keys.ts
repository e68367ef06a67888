/** Keys of [general] that the console has SET: they stand above the files until the next RELOAD. */

import type { Problems } from '../problems.js'
import { checkValue, type Entry } from './check-section.js'
import { effectOf, generalKeys } from './config-sections.js'
import type { KeyDefinition } from './key-types.js'

const PLACE = { file: 'SET' }
const numbers = new Set(['integer', 'number', 'milliseconds', 'seconds', 'bytes'])
const truths: Readonly<Record<string, boolean>> = {
  ...{ on: true, true: true, yes: true, 1: true },
  ...{ off: false, false: false, no: false, 0: false },
}

/** What a TOML file would hold. */
function tomlValue(definition: KeyDefinition, text: string): unknown {
  if (definition.type === 'boolean') return truths[text.toLowerCase()] ?? text
  if (!numbers.has(definition.type)) return text
  if (/^(unlimited|infinity)$/i.test(text)) return Number.POSITIVE_INFINITY
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}

function read(name: string, text: string, problems: Problems): unknown {
  const definition: KeyDefinition | undefined = Object.hasOwn(generalKeys, name)
    ? generalKeys[name as keyof typeof generalKeys]
    : undefined
  if (!definition) problems.error(PLACE, `there is no key "${name}" in [general]`)
  else if (definition.takesEffect === 'restart')
    problems.error(PLACE, `${name} is read at the start only`)
  else if (effectOf('general', name, definition) !== 'working')
    problems.error(PLACE, `${name} has no effect`)
  else return checkValue(name, definition, tomlValue(definition, text), PLACE, problems)
  return undefined
}

/** The entries of the files with what was SET in the place of theirs. */
export function withSettings(
  entries: readonly Entry[],
  settings: ReadonlyMap<string, string>,
  problems: Problems,
): readonly Entry[] {
  if (settings.size === 0) return entries
  const written = entries.filter(({ section }) => section === 'general').at(-1)
  const set = Object.fromEntries(
    [...settings].map(([name, text]) => [name, read(name, text, problems)]),
  )
  const merged: Entry = {
    section: 'general',
    values: { ...written?.values, ...set },
    place: written?.place ?? PLACE,
    placeOf: (key) => (settings.has(key) ? PLACE : (written?.placeOf(key) ?? PLACE)),
  }
  return [...entries.filter((entry) => entry !== written), merged]
}

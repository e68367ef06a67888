/** Keys given as text: environment variables and the parameters of a database URL. Laxer than TOML, as PgDog is. */
import { checkValue, tellEffect } from './keys/check-section.js'
import { configSections, environmentName } from './keys/config-sections.js'
import type { KeyDefinition } from './keys/key-types.js'
import type { Place, Problems } from './problems.js'

const yes = new Set(['true', 't', '1', 'on', 'yes'])
const no = new Set(['false', 'f', '0', 'off', 'no'])
const numbers = new Set(['integer', 'number', 'milliseconds', 'seconds', 'bytes'])
const plain = (word: string): string => word.toLowerCase().replace(/[-_]/g, '')

function numberFrom(text: string): unknown {
  if (!/^-?\d+(\.\d+)?$/.test(text)) return text
  const value = Number(text)
  if (Number.isSafeInteger(value) || text.includes('.')) return value
  return BigInt(text)
}

/** The value that TOML would have had; text that does not fit stays text, so that the check names it. */
function fromText(definition: KeyDefinition, text: string): unknown {
  if (numbers.has(definition.type)) return numberFrom(text.trim())
  if (definition.type === 'boolean') {
    const word = text.trim().toLowerCase()
    if (yes.has(word)) return true
    return no.has(word) ? false : text
  }
  if (definition.values) {
    return definition.values.find((known) => plain(known) === plain(text.trim())) ?? text
  }
  if (definition.type === 'strings') return text.split(',').map((part) => part.trim())
  if (definition.type === 'headers') {
    const pairs = text.split(',').map((part) => part.split('='))
    return Object.fromEntries(pairs.map(([name = '', ...rest]) => [name.trim(), rest.join('=')]))
  }
  return text
}

/** Checks a key that came as text. */
export function checkText(
  key: string,
  definition: KeyDefinition,
  text: string,
  place: Place,
  problems: Problems,
): unknown {
  return checkValue(key, definition, fromText(definition, text), place, problems)
}

export interface EnvironmentDefaults {
  /** Section → TOML key → value. */
  readonly values: ReadonlyMap<string, Readonly<Record<string, unknown>>>
  /** `section.key` → name of the variable. */
  readonly names: ReadonlyMap<string, string>
}

/** Defaults from the environment; what the files say wins. */
export function readEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  problems: Problems,
): EnvironmentDefaults {
  const values = new Map<string, Record<string, unknown>>()
  const names = new Map<string, string>()
  for (const section of configSections) {
    const found: Record<string, unknown> = {}
    for (const [key, definition] of Object.entries(section.keys)) {
      const name = environmentName(section.name, key, definition)
      const text = name === undefined ? undefined : env[name]
      if (name === undefined || text === undefined || text === '') continue
      const place = { file: `environment ${name}` }
      const value = checkText(name, definition, text, place, problems)
      if (value === undefined) continue
      tellEffect(section, key, definition, place, problems, value)
      found[key] = value
      names.set(`${section.name}.${key}`, name)
    }
    values.set(section.name, found)
  }
  return { values, names }
}

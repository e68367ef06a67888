/**
 * Session parameters that a client has set, and the SQL that puts them on a server which has others.
 * Immutable and interned: two sessions with equal settings hold the same object, so that comparing is `===`.
 */

/** Parameters that must be put on before others, because setting them resets the others. */
const FIRST = ['session_authorization', 'role']

/** Marks a value that is not SQL but the text itself, as a startup packet brings lists of names. */
const RAW = '\u0001'

/** A value for `Settings` that is put on as it stands, without SQL's quoting of names. */
export const rawSetting = (text: string): string => RAW + text

/** The text of a raw value; undefined for SQL. */
export const rawSettingText = (value: string): string | undefined =>
  value.startsWith(RAW) ? value.slice(1) : undefined

/** The statement that sets `name`. */
export function setStatement(name: string, value: string): string {
  const raw = rawSettingText(value)
  if (raw === undefined) return `SET ${settingName(name)} TO ${value}`
  return `SELECT pg_catalog.set_config(${quoteLiteral(name)}, ${quoteLiteral(raw)}, false)`
}

/** Routing hints: they are the proxy's own and mean nothing to a server. */
const OURS = /^(?:pgshard|pgdog)\./

export class Settings {
  /** Lower-case name → value as SQL, ready to follow `SET name TO`. */
  readonly values: ReadonlyMap<string, string>
  #pipelined: Settings | undefined

  private constructor(values: ReadonlyMap<string, string>) {
    this.values = values
  }

  static readonly none = new Settings(new Map())

  static #known = new Map<string, Settings>()

  static of(values: ReadonlyMap<string, string>): Settings {
    if (values.size === 0) return Settings.none
    const sorted = [...values].sort(([a], [b]) => (a < b ? -1 : 1))
    const key = JSON.stringify(sorted)
    const known = Settings.#known.get(key)
    if (known) return known
    if (Settings.#known.size >= 10_000) Settings.#known.clear() // only sharing is lost
    const fresh = new Settings(new Map(sorted))
    Settings.#known.set(key, fresh)
    return fresh
  }

  with(name: string, sqlValue: string): Settings {
    return Settings.of(new Map(this.values).set(name.toLowerCase(), sqlValue))
  }

  without(name: string): Settings {
    const values = new Map(this.values)
    values.delete(name.toLowerCase())
    return Settings.of(values)
  }

  /** What RESET ALL leaves alone: who the session is. */
  get identity(): Settings {
    return Settings.of(new Map([...this.values].filter(([name]) => FIRST.includes(name))))
  }

  /** These, but for who the session is, which is taken from `other`. */
  withIdentityOf(other: Settings): Settings {
    const rest = [...this.values].filter(([name]) => !FIRST.includes(name))
    return Settings.of(new Map([...rest, ...other.identity.values]))
  }

  /** What must be equal on a server that carries statements of several clients: not the name of the application, nor hints. */
  get pipelined(): Settings {
    this.#pipelined ??= Settings.of(
      new Map([...this.values].filter(([name]) => name !== 'application_name' && !OURS.test(name))),
    )
    return this.#pipelined
  }

  /** True when both hold the same, also when interning forgot one of them. */
  equals(other: Settings): boolean {
    if (this === other) return true
    if (this.values.size !== other.values.size) return false
    for (const [name, value] of this.values) if (other.values.get(name) !== value) return false
    return true
  }
}

/** What a statement means is read from these when it is prepared: its literals, its names, its bytes. */
const READING = new Set([
  ...FIRST,
  'array_nulls',
  'backslash_quote',
  'client_encoding',
  'datestyle',
  'default_text_search_config',
  'intervalstyle',
  'lc_monetary',
  'lc_numeric',
  'search_path',
  'standard_conforming_strings',
  'timezone',
  'xmloption',
])

const readings = new WeakMap<Settings, Settings>()

/** Those of `settings` by which a statement is read; the same object for equal ones. */
export function readingOf(settings: Settings): Settings {
  let reading = readings.get(settings)
  if (!reading) {
    reading = Settings.of(new Map([...settings.values].filter(([name]) => READING.has(name))))
    readings.set(settings, reading)
  }
  return reading
}

/** The statements that turn `present` into `wanted`; empty when nothing differs. */
export function settingsDifference(present: Settings, wanted: Settings): string {
  if (present === wanted) return ''
  const parts: string[] = []
  for (const name of present.values.keys()) {
    if (!wanted.values.has(name) && !OURS.test(name)) parts.push(`RESET ${settingName(name)}`)
  }
  const names = [...wanted.values.keys()]
  names.sort((a, b) => rank(a) - rank(b))
  for (const name of names) {
    const value = wanted.values.get(name) as string
    if (present.values.get(name) !== value && !OURS.test(name))
      parts.push(setStatement(name, value))
  }
  return parts.join('; ')
}

const rank = (name: string): number => {
  const at = FIRST.indexOf(name)
  return at < 0 ? FIRST.length : at
}

/** A parameter name as SQL: dotted parts quoted where they are not plain words. */
export function settingName(name: string): string {
  return name
    .split('.')
    .map((part) => (/^[a-z_][a-z0-9_$]*$/i.test(part) ? part : `"${part.replaceAll('"', '""')}"`))
    .join('.')
}

/** A string literal of SQL, also when standard_conforming_strings is off. */
export function quoteLiteral(text: string): string {
  const quoted = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
  return text.includes('\\') ? `E${quoted}` : quoted
}

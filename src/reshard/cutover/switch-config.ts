/**
 * The names of two databases exchanged in the file of a running proxy: what was called A is called B and the other way
 * round, wherever the file speaks of databases. Comments and order stay; the old file is kept beside it.
 */
import { copyFile, open, readFile, rename, stat } from 'node:fs/promises'
import { parse, stringify } from 'smol-toml'
import { engineError } from '../../errors/engine-error.js'

/** Keys that hold the name of a database, in any section but those of users. */
const nameKeys = ['database', 'source_db', 'destination_db']

type Section = Record<string, unknown>

/** The parsed file with the names exchanged. */
function exchanged(config: Section, a: string, b: string): Section {
  const other = (name: unknown): unknown => (name === a ? b : name === b ? a : name)
  const result: Section = {}
  for (const [section, value] of Object.entries(config)) {
    if (!Array.isArray(value) || section === 'users') {
      result[section] = value
      continue
    }
    result[section] = value.map((entry: Section) => {
      const copy: Section = { ...entry }
      for (const key of nameKeys) if (key in copy) copy[key] = other(copy[key])
      if (section !== 'databases' || (entry['name'] !== a && entry['name'] !== b)) return copy
      // The database on the server is called as the entry was, unless the entry says otherwise.
      return {
        ...copy,
        name: other(entry['name']),
        database_name: entry['database_name'] ?? entry['name'],
      }
    })
  }
  return result
}

/** The text with the names exchanged line by line, for the usual way of writing TOML. */
function exchangedText(text: string, a: string, b: string): string {
  const sections = text.split(/^(?=[ \t]*\[)/m)
  return sections.map((section) => exchangedSection(section, a, b)).join('')
}

function exchangedSection(section: string, a: string, b: string): string {
  const title = /^[ \t]*\[\[\s*([\w-]+)\s*\]\]/.exec(section)?.[1]
  if (title === undefined || title === 'users') return section
  const keys = title === 'databases' ? [...nameKeys, 'name'] : nameKeys
  const hasServerName = /^[ \t]*database_name[ \t]*=/m.test(section)
  const line = new RegExp(
    `^([ \\t]*)(${keys.join('|')})([ \\t]*=[ \\t]*)(["'])([^"'\\n]*)\\4`,
    'gm',
  )
  return section.replace(
    line,
    (whole, indent: string, key: string, equals: string, quote: string, name: string) => {
      if (name !== a && name !== b) return whole
      const swapped = `${indent}${key}${equals}${quote}${name === a ? b : a}${quote}`
      const needsServerName = title === 'databases' && key === 'name' && !hasServerName
      return needsServerName
        ? `${indent}database_name = ${quote}${name}${quote}\n${swapped}`
        : swapped
    },
  )
}

const normal = (value: unknown): string => JSON.stringify(sortKeys(value))

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (value === null || typeof value !== 'object' || value instanceof Date) return String(value)
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sortKeys(inner)]),
  )
}

/**
 * The text of a configuration with databases `a` and `b` exchanged. Edited by line where that gives exactly the wanted
 * values, else written anew (comments are lost then).
 * @throws RESHARD_CONFIG_FILE
 */
export function exchangeDatabases(text: string, a: string, b: string, path = 'pgdog.toml'): string {
  const config = parse(text) as Section
  const databases = (config['databases'] ?? []) as Section[]
  for (const name of [a, b]) {
    if (databases.some((entry) => entry['name'] === name)) continue
    throw engineError('RESHARD_CONFIG_FILE', { path, reason: `it has no database "${name}"` })
  }
  const wanted = exchanged(config, a, b)
  const edited = exchangedText(text, a, b)
  try {
    if (normal(parse(edited)) === normal(wanted)) return edited
  } catch {
    // Written in a way that lines do not tell: below.
  }
  return stringify(wanted)
}

export interface ConfigSwitch {
  /** Reads the file and works out the new one; writes nothing. */
  prepare(): Promise<void>
  /** Puts the new file in place; the name of the file that keeps the old one, null when there was nothing to exchange. */
  commit(): Promise<string | null>
  /** Puts the old one back. */
  undo(): Promise<void>
}

/** For a file that says already what it is to say. */
export const noSwitch: ConfigSwitch = {
  prepare: async () => undefined,
  commit: async () => null,
  undo: async () => undefined,
}

/** The exchange in one file: written beside it, flushed, then renamed over it. */
export function configSwitch(path: string, a: string, b: string): ConfigSwitch {
  let before = ''
  let after = ''
  const backup = path.endsWith('.toml') ? path.replace(/\.toml$/, '.bak.toml') : `${path}.bak.toml`
  const replace = async (text: string): Promise<void> => {
    const draft = `${path}.new`
    const { mode } = await stat(path)
    const file = await open(draft, 'w', mode)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  }
  const guard = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw engineError('RESHARD_CONFIG_FILE', { path, reason }, { cause: error })
    }
  }
  return {
    prepare: () =>
      guard(async () => {
        before = await readFile(path, 'utf8')
        after = exchangeDatabases(before, a, b, path)
      }),
    commit: () =>
      guard(async () => {
        if ((await readFile(path, 'utf8')) !== before) throw new Error('it was changed meanwhile')
        await copyFile(path, backup)
        await replace(after)
        return backup
      }),
    undo: () => guard(() => replace(before)),
  }
}

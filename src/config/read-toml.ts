/** pgdog.toml and users.toml: text → checked entries with the place of every key. Reads files, knows nothing of what the keys mean. */
import { readFileSync } from 'node:fs'
import { parse, TomlError } from 'smol-toml'
import { engineError } from '../errors/engine-error.js'
import { bracketed, checkEntry, type Entry, isTable } from './keys/check-section.js'
import { configSections, type SectionDefinition } from './keys/config-sections.js'
import type { Place, Problems } from './problems.js'
import { nearest } from './suggest.js'
import { TomlLines } from './toml-lines.js'

export type FileKind = 'pgdog.toml' | 'users.toml'

const reasons: Record<string, string> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
}

/** The text of a file that the user named. @throws FILE_MISSING */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? ''
    throw engineError('FILE_MISSING', { path, reason: reasons[code] ?? code }, { cause })
  }
}

/** smol-toml's message without its title and its picture of the text. */
function syntaxMessage(error: TomlError): string {
  const first = error.message.split('\n')[0] ?? ''
  return first.replace(/^Invalid TOML document: /, '')
}

function parseToml(text: string, file: string, problems: Problems): Record<string, unknown> {
  try {
    return parse(text, { integersAsBigInt: 'asNeeded' })
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    problems.error({ file, line: error.line }, `syntax error: ${syntaxMessage(error)}`)
    return {}
  }
}

const belongs = (section: SectionDefinition, kind: FileKind): boolean =>
  section.file === 'either' || section.file === kind

function findSection(
  name: string,
  kind: FileKind,
  place: Place,
  problems: Problems,
): SectionDefinition | undefined {
  const top = configSections.filter((section) => !section.name.includes('.'))
  const section = top.find((candidate) => candidate.name === name)
  if (section && belongs(section, kind)) return section
  if (section) problems.error(place, `${bracketed(section)} belongs in ${section.file}`)
  else {
    const names = top
      .filter((candidate) => belongs(candidate, kind))
      .map(({ name: known }) => known)
    const guess = nearest(name, names)
    const tail = guess === undefined ? '' : `; did you mean "${guess}"?`
    problems.error(place, `unknown section "${name}"${tail}`)
  }
  return undefined
}

/** Reads the text of one file. All problems are noted, none is thrown. */
export function readEntries(
  text: string,
  file: string,
  kind: FileKind,
  problems: Problems,
): Entry[] {
  const root = parseToml(text, file, problems)
  const lines = new TomlLines(text)
  const placeAt = (path: readonly (string | number)[]): Place => {
    const line = lines.of(path)
    return line === undefined ? { file } : { file, line }
  }
  const entries: Entry[] = []
  for (const [name, raw] of Object.entries(root)) {
    const section = findSection(name, kind, placeAt([name, 0]), problems)
    if (!section) continue
    const list = Array.isArray(raw) ? raw : [raw]
    if (section.list !== Array.isArray(raw) || !list.every(isTable)) {
      problems.error(placeAt([name, 0]), `write ${bracketed(section)}`)
      continue
    }
    list.forEach((table, i) => {
      const prefix = section.list ? [name, i] : [name]
      entries.push(checkEntry(section, table, (path) => placeAt([...prefix, ...path]), problems))
    })
  }
  return entries
}

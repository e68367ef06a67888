/**
 * pgbouncer.ini → its sections, as PgBouncer itself reads them: `;` and `#` begin a comment line, `%include FILE` stands for
 * the lines of FILE (relative to the directory that PgBouncer was started in), and the last of two equal keys wins.
 */
import { resolve } from 'node:path'
import { engineError } from '../../errors/engine-error.js'
import { readText } from '../read-toml.js'

export interface IniEntry {
  readonly section: string
  readonly key: string
  readonly value: string
  /** `pgbouncer.ini:12` */
  readonly place: string
}

/** As deep as PgBouncer follows them. */
const deepest = 10

function linesOf(path: string): string[] {
  // an editor of Windows may have left a mark of the byte order
  return readText(path)
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
}

/** `"a ""quoted"" name"` or a bare word, and what stands behind the equals sign. */
const assignment = /^\s*(?:"((?:[^"]|"")*)"|([^=\s]+))\s*=\s*(.*?)\s*$/

interface Reading {
  readonly path: string
  readonly base: string
  readonly depth: number
  section: string
}

const isBlank = (text: string): boolean =>
  text === '' || text.startsWith(';') || text.startsWith('#')

function readLine(text: string, place: string, reading: Reading): IniEntry[] {
  const included = /^%include\s+(.+)$/.exec(text)?.[1]
  if (included !== undefined) {
    const { base, depth, section } = reading
    const inner = readIni(resolve(base, included), base, depth + 1, section)
    reading.section = inner.at(-1)?.section ?? section
    return inner
  }
  const header = /^\[(\w+)\]$/.exec(text)?.[1]
  if (header !== undefined) {
    reading.section = header
    return []
  }
  const [, quoted, bare, value] = assignment.exec(text) ?? []
  if (value === undefined || reading.section === '') {
    throw engineError('USAGE', { message: `${place}: not a section, key = value or %include` })
  }
  const key = quoted === undefined ? bare! : quoted.replaceAll('""', '"')
  return [{ section: reading.section, key, value, place }]
}

/** `base`: where relative paths start. @throws FILE_MISSING, USAGE */
export function readIni(path: string, base: string, depth = 0, section = ''): IniEntry[] {
  if (depth > deepest) {
    throw engineError('USAGE', { message: `${path}: %include goes deeper than ${deepest} files` })
  }
  const reading: Reading = { path, base, depth, section }
  return linesOf(path).flatMap((line, index) => {
    const text = line.trim()
    return isBlank(text) ? [] : readLine(text, `${path}:${index + 1}`, reading)
  })
}

/**
 * `host=a port=6432 password='it''s'` → its pairs. @throws USAGE
 */
export function readPairs({ value, place }: IniEntry): Map<string, string> {
  const pairs = new Map<string, string>()
  const one = /\s*(\w+)\s*=\s*(?:'((?:[^']|'')*)'|([^\s']*))(?=\s|$)/y
  let at = 0
  while (at < value.length && value.slice(at).trim() !== '') {
    one.lastIndex = at
    const match = one.exec(value)
    if (!match)
      throw engineError('USAGE', { message: `${place}: cannot read "${value.slice(at)}"` })
    pairs.set(match[1]!, match[2]?.replaceAll("''", "'") ?? match[3] ?? '')
    at = one.lastIndex
  }
  return pairs
}

export interface ListedUser {
  readonly name: string
  readonly secret: string
}

/** userlist.txt: lines of `"name" "secret"`; what stands behind is ignored, as PgBouncer does. @throws FILE_MISSING */
export function readUserList(path: string): ListedUser[] {
  return linesOf(path).flatMap((line) => {
    const match = /^\s*"((?:[^"]|"")*)"\s+"((?:[^"]|"")*)"/.exec(line)
    if (!match) return []
    const [name, secret] = [match[1]!, match[2]!].map((text) => text.replaceAll('""', '"'))
    return [{ name: name!, secret: secret! }]
  })
}

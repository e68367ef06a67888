/**
 * Databases without files: `-d URL`, `PGDOG_DATABASE_URL_1..n`, `PGDOG_MIRRORING_1..n`.
 * A URL makes one entry of [[databases]] and one of [[users]]. URLs hold passwords: no message repeats one.
 */

import { checkText } from './config-text.js'
import type { Entry } from './keys/check-section.js'
import { databaseKeys } from './keys/config-keys-databases.js'
import type { KeyTable } from './keys/key-types.js'
import type { Place, Problems } from './problems.js'
import { nearest } from './suggest.js'

const entry = (section: string, values: Record<string, unknown>, place: Place): Entry => ({
  section,
  values,
  place,
  placeOf: () => place,
})

function readParameters(
  parameters: URLSearchParams,
  keys: KeyTable,
  place: Place,
  problems: Problems,
): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [key, text] of parameters) {
    const definition = Object.hasOwn(keys, key) ? keys[key] : undefined
    if (!definition) {
      const guess = nearest(key, Object.keys(keys))
      const tail = guess === undefined ? '' : `; did you mean "${guess}"?`
      problems.error(place, `unknown parameter "${key}"${tail}`)
      continue
    }
    const value = checkText(key, definition, text, place, problems)
    if (value !== undefined) values[key] = value
  }
  return values
}

/** Keys that a URL gives elsewhere. */
const { name: _name, host: _host, port: _port, ...parameterKeys } = databaseKeys

function parseUrl(text: string, place: Place, problems: Problems): URL | undefined {
  try {
    const url = new URL(text)
    if (/^postgres(ql)?:$/.test(url.protocol) && url.pathname.length > 1) return url
  } catch {
    // Not shown: the text may hold a password.
  }
  problems.error(place, 'expected postgres://user:password@host:port/database')
  return undefined
}

function readUrl(text: string, place: Place, problems: Problems): Entry[] {
  const url = parseUrl(text, place, problems)
  if (!url) return []
  const name = decodeURIComponent(url.pathname.slice(1))
  // A Unix socket directory is written percent-encoded, or as ?host=/directory.
  const socket = url.searchParams.get('host')
  url.searchParams.delete('host')
  const host =
    socket ?? (decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, '$1') || '127.0.0.1')
  const database: Record<string, unknown> = {
    ...readParameters(url.searchParams, parameterKeys, place, problems),
    name,
    host,
  }
  if (url.port !== '') database['port'] = Number(url.port)
  const entries = [entry('databases', database, place)]
  if (url.username !== '') {
    const user: Record<string, unknown> = { name: decodeURIComponent(url.username), database: name }
    if (url.password !== '') user['password'] = decodeURIComponent(url.password)
    entries.push(entry('users', user, place))
  }
  return entries
}

function numbered(
  env: Readonly<Record<string, string | undefined>>,
  prefix: string,
): [string, string][] {
  const found: [string, string][] = []
  for (let i = 1; ; i++) {
    const text = env[`${prefix}${i}`]
    if (text === undefined) return found
    found.push([`environment ${prefix}${i}`, text])
  }
}

/** Entries of [[databases]] and [[users]] from flags and environment. Several URLs of one user make one entry. */
export function readUrls(
  urls: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  problems: Problems,
): Entry[] {
  const given: [string, string][] = [
    ...urls.map((text, i): [string, string] => [`--database-url ${i + 1}`, text]),
    ...numbered(env, 'PGDOG_DATABASE_URL_'),
  ]
  const entries = given.flatMap(([file, text]) => readUrl(text, { file }, problems))
  for (const [file] of numbered(env, 'PGDOG_MIRRORING_'))
    problems.error({ file }, 'mirroring is not supported yet')
  return withoutTwins(entries)
}

/**
 * One entry for each user and database. Shards whose URLs give different passwords keep theirs in their own database entry,
 * where it wins over the user's.
 */
function withoutTwins(entries: readonly Entry[]): Entry[] {
  const first = new Map<string, Entry>()
  const differing = new Set<string>()
  const nameOf = (one: Entry) => JSON.stringify([one.values['name'], one.values['database']])
  for (const one of entries) {
    if (one.section !== 'users') continue
    const known = first.get(nameOf(one))
    if (!known) first.set(nameOf(one), one)
    else if (known.values['password'] !== one.values['password']) differing.add(nameOf(one))
  }
  return entries.flatMap((one, i) => {
    if (one.section === 'users') return first.get(nameOf(one)) === one ? [one] : []
    const user = entries[i + 1]
    if (user?.section !== 'users' || !differing.has(nameOf(user))) return [one]
    const { name, password } = user.values
    return [{ ...one, values: { user: name, password, ...one.values } }]
  })
}

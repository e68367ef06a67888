/**
 * The URI form of a connection string: `postgres://user:secret@a:5432,[::1]:5433/db?connect_timeout=2`.
 * Never uses a general URL parser, which knows neither several hosts nor percent-encoded socket directories.
 * Source followed: conninfo_uri_parse in fe-connect.c.
 */
import { type ConninfoValues, conninfoError, storeValue } from './conninfo-options.js'

const prefixes = ['postgresql://', 'postgres://']

export const isConninfoUri = (text: string): boolean =>
  prefixes.some((prefix) => text.startsWith(prefix))

/** Percent-decoding on bytes, so that encoded UTF-8 comes out whole. Spaces around are dropped, as libpq 17 and newer do. */
function decode(written: string, shown = written): string {
  const text = written.replace(/^ +| +$/g, '')
  if (text.includes(' '))
    throw conninfoError(
      `unexpected spaces found in "${shown}", use percent-encoded spaces (%20) instead`,
    )
  if (!text.includes('%')) return text
  const bytes = Buffer.from(text, 'utf8')
  const out: number[] = []
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] !== 0x25) {
      out.push(bytes[i] as number)
      continue
    }
    const digits = bytes.toString('latin1', i + 1, i + 3)
    if (!/^[0-9a-fA-F]{2}$/.test(digits))
      throw conninfoError(`invalid percent-encoded token: "${shown}"`)
    if (digits === '00')
      throw conninfoError(`forbidden value %00 in percent-encoded value: "${shown}"`)
    out.push(Number.parseInt(digits, 16))
    i += 2
  }
  return Buffer.from(out).toString('utf8')
}

interface Cursor {
  readonly uri: string
  /** The URI with its password hidden, for messages. */
  readonly shown: string
  at: number
}

/** Reads up to one of `stops` or the end. */
function readUntil(cursor: Cursor, stops: string): string {
  const start = cursor.at
  while (cursor.at < cursor.uri.length && !stops.includes(cursor.uri[cursor.at] as string))
    cursor.at++
  return cursor.uri.slice(start, cursor.at)
}

function readCredentials(cursor: Cursor, values: ConninfoValues): void {
  const start = cursor.at
  const credentials = readUntil(cursor, '@/')
  if (cursor.uri[cursor.at] !== '@') {
    cursor.at = start
    return
  }
  cursor.at++
  const colon = credentials.indexOf(':')
  const user = colon < 0 ? credentials : credentials.slice(0, colon)
  const password = colon < 0 ? '' : credentials.slice(colon + 1)
  if (user !== '') values['user'] = decode(user)
  if (password !== '') values['password'] = decode(password, '***')
}

function readBracketedHost(cursor: Cursor): string {
  cursor.at++
  const host = readUntil(cursor, ']')
  if (cursor.at >= cursor.uri.length)
    throw conninfoError(
      `end of string reached when looking for matching "]" in IPv6 host address in URI: "${cursor.shown}"`,
    )
  if (host === '')
    throw conninfoError(`IPv6 host address may not be empty in URI: "${cursor.shown}"`)
  cursor.at++
  const next = cursor.uri[cursor.at]
  if (next !== undefined && !':/?,'.includes(next))
    throw conninfoError(
      `unexpected character "${next}" at position ${cursor.at + 1} in URI (expected ":" or "/"): "${cursor.shown}"`,
    )
  return host
}

function readHosts(cursor: Cursor, values: ConninfoValues): void {
  const hosts: string[] = []
  const ports: string[] = []
  do {
    if (hosts.length > 0) cursor.at++
    hosts.push(
      cursor.uri[cursor.at] === '[' ? readBracketedHost(cursor) : readUntil(cursor, ':/?,'),
    )
    let port = ''
    if (cursor.uri[cursor.at] === ':') {
      cursor.at++
      port = readUntil(cursor, '/?,')
    }
    ports.push(port)
  } while (cursor.uri[cursor.at] === ',')
  const hostList = hosts.join(',')
  const portList = ports.join(',')
  if (hostList !== '') values['host'] = decode(hostList)
  if (portList !== '') values['port'] = decode(portList)
}

function readParameters(query: string, values: ConninfoValues): void {
  // A trailing "&" ends the list; an empty pair in the middle does not.
  const pairs = query.endsWith('&') ? query.slice(0, -1).split('&') : query.split('&')
  for (const pair of pairs) {
    const [rawKeyword = '', rawValue, ...more] = pair.split('=')
    if (more.length > 0)
      throw conninfoError(`extra key/value separator "=" in URI query parameter: "${rawKeyword}"`)
    if (rawValue === undefined)
      throw conninfoError(`missing key/value separator "=" in URI query parameter: "${rawKeyword}"`)
    const keyword = decode(rawKeyword)
    const value = decode(rawValue)
    if (keyword === 'ssl' && value === 'true') values['sslmode'] = 'require'
    else if (!storeValue(values, keyword, value))
      throw conninfoError(`invalid URI query parameter: "${keyword}"`)
  }
}

/** The text with what stands between ":" and "@" of the credentials hidden. */
export const hidePassword = (text: string): string =>
  text
    .replace(/^(postgres(?:ql)?:\/\/[^:@/]*:)[^@/]*@/, '$1***@')
    .replace(/(\bpassword\s*=\s*)('(?:[^'\\]|\\.)*'|(?:[^\s\\&]|\\.)+)/gi, '$1***')

/** URI → values. */
export function parseConninfoUri(uri: string): ConninfoValues {
  const prefix = prefixes.find((known) => uri.startsWith(known))
  if (prefix === undefined)
    throw conninfoError(`invalid URI propagated to internal parser routine: "${hidePassword(uri)}"`)
  const values: ConninfoValues = {}
  const cursor = { uri, shown: hidePassword(uri), at: prefix.length }
  readCredentials(cursor, values)
  readHosts(cursor, values)
  if (cursor.uri[cursor.at] === '/') {
    cursor.at++
    const database = readUntil(cursor, '?')
    if (database !== '') values['dbname'] = decode(database)
  }
  if (cursor.uri[cursor.at] === '?' && cursor.at + 1 < uri.length)
    readParameters(uri.slice(cursor.at + 1), values)
  return values
}

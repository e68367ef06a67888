/**
 * Rules on who may connect from where, in the form of pg_hba.conf; the first that fits counts. Pure: the addresses of
 * this machine are handed in.
 * @see PostgreSQL documentation, "The pg_hba.conf File"; `src/backend/libpq/hba.c`
 */
import {
  type IpBytes,
  type IpNetwork,
  isInNetwork,
  networkOf,
  parseIp,
  unmapped,
} from './ip-network.js'

const types = ['local', 'host', 'hostssl', 'hostnossl', 'hostnogssenc'] as const
const methods = ['trust', 'reject', 'md5', 'scram-sha-256', 'password', 'cert'] as const

export type HbaType = (typeof types)[number]
export type HbaMethod = (typeof methods)[number]

export interface HbaRule {
  readonly type: HbaType
  /** Undefined: any. */
  readonly databases: NameList
  readonly users: NameList
  /** Undefined for `local`. */
  readonly address?: 'all' | 'samehost' | 'samenet' | IpNetwork
  readonly method: HbaMethod
  /** `clientcert=`: a certificate is needed beside the method. */
  readonly clientCertificate?: 'verify-ca' | 'verify-full'
  /** From 1, in the file or the list. */
  readonly line: number
  readonly text: string
}

/** Of a column. */
export interface NameList {
  readonly isAll: boolean
  /** Database of the user's own name. */
  readonly isSameUser: boolean
  readonly names: readonly string[]
}

export interface HbaProblem {
  readonly line: number
  readonly message: string
}

/** Who comes from where. */
export interface HbaClient {
  readonly user: string
  readonly database: string
  /** Undefined: by a Unix socket. */
  readonly address: string | undefined
  readonly encrypted: boolean
}

/** An address of this machine with the mask of its network. */
export interface OwnAddress {
  readonly address: string
  readonly netmask: string
}

interface Token {
  readonly text: string
  readonly isQuoted: boolean
}

class HbaError extends Error {}

const fail = (message: string): never => {
  throw new HbaError(message)
}

/** Splits a line into fields, each a list of tokens. */
function fieldsOf(line: string): Token[][] {
  const fields: Token[][] = []
  const pattern = /\s*(#.*$|"([^"]*)"|[^\s,"#]+|,)/gy
  let isListOpen = false
  let end = 0
  for (const match of line.matchAll(pattern)) {
    const [whole, word = '', quoted] = match
    end = match.index + whole.length
    if (word.startsWith('#')) continue
    if (word === ',') {
      isListOpen = true
      continue
    }
    const token = { text: quoted ?? word, isQuoted: quoted !== undefined }
    if (isListOpen) (fields.at(-1) ?? fail('a comma without a name before it')).push(token)
    else fields.push([token])
    isListOpen = false
  }
  if (line.slice(end).trim() !== '') fail('an open quote')
  if (isListOpen) fail('a comma without a name behind it')
  return fields
}

function single(field: Token[] | undefined, what: string): Token {
  const token = field?.[0] ?? fail(`there is no ${what}`)
  if ((field?.length ?? 0) > 1) fail(`there is more than one ${what}`)
  return token
}

function namesOf(field: Token[] | undefined, what: 'database' | 'user'): NameList {
  if (!field) return fail(`there is no ${what}`)
  const words = field.filter(({ isQuoted }) => !isQuoted).map(({ text }) => text)
  for (const word of words) {
    if (word.startsWith('@')) fail(`${word}: names from files are not supported`)
    if (word.startsWith('/')) fail(`${word}: regular expressions are not supported`)
    if (word.startsWith('+') && what === 'user')
      fail(`${word}: membership in roles is not known here; name the users`)
    if (what === 'database' && (word === 'samerole' || word === 'samegroup'))
      fail(`${word}: membership in roles is not known here; name the databases`)
  }
  // Replication connections do not pass, so their keyword means nobody.
  const keywords = what === 'database' ? ['all', 'sameuser', 'replication'] : ['all']
  return {
    isAll: words.includes('all'),
    isSameUser: what === 'database' && words.includes('sameuser'),
    names: field
      .filter(({ text, isQuoted }) => isQuoted || !keywords.includes(text))
      .map(({ text }) => text),
  }
}

function addressOf(rest: Token[][]): NonNullable<HbaRule['address']> {
  const { text, isQuoted } = single(rest.shift(), 'address')
  if (!isQuoted && (text === 'all' || text === 'samehost' || text === 'samenet')) return text
  const [host = '', prefix] = text.split('/')
  const base = parseIp(host)
  if (!base) return fail(`${text}: only addresses are supported, not names of hosts`)
  if (prefix !== undefined) {
    const network = /^\d{1,3}$/.test(prefix) ? networkOf(base, Number(prefix)) : undefined
    return network ?? fail(`${text}: the length of the network does not fit`)
  }
  const mask = parseIp(single(rest.shift(), 'mask (write the address as 10.0.0.0/8)').text)
  if (mask?.length !== base.length) return fail(`${text}: the mask does not fit the address`)
  return { base, mask }
}

function optionsOf(rest: Token[][], type: HbaType): Pick<HbaRule, 'clientCertificate'> {
  let found: HbaRule['clientCertificate']
  for (const field of rest) {
    const { text } = single(field, 'value of an option')
    const [name, value] = text.split('=')
    if (name !== 'clientcert') fail(`option ${name} is not supported`)
    if (value !== 'verify-ca' && value !== 'verify-full')
      return fail('clientcert must be verify-ca or verify-full')
    if (type !== 'hostssl') fail('clientcert needs hostssl')
    found = value
  }
  return found === undefined ? {} : { clientCertificate: found }
}

function ruleOf(text: string, line: number): HbaRule | undefined {
  const [first, ...rest] = fieldsOf(text)
  if (!first) return undefined
  const word = single(first, 'type').text
  const type = types.find((one) => one === word) ?? fail(`type ${word} is not supported`)
  const databases = namesOf(rest.shift(), 'database')
  const users = namesOf(rest.shift(), 'user')
  const address = type === 'local' ? undefined : addressOf(rest)
  const name = single(rest.shift(), 'method').text
  const method =
    methods.find((one) => one === name) ??
    fail(`method ${name} is not supported; use ${methods.join(', ')}`)
  if (method === 'cert' && type !== 'hostssl') fail('method cert needs hostssl')
  const options = optionsOf(rest, type)
  const place = { line, text: text.trim() }
  return { type, databases, users, method, ...options, ...place, ...(address ? { address } : {}) }
}

/** Reads rules, one a line; a line that ends in a backslash goes on in the next. */
export function parseHba(lines: readonly string[]): {
  readonly rules: readonly HbaRule[]
  readonly problems: readonly HbaProblem[]
} {
  const rules: HbaRule[] = []
  const problems: HbaProblem[] = []
  let held = ''
  let first = 1
  for (const [i, raw] of lines.entries()) {
    if (held === '') first = i + 1
    if (raw.endsWith('\\') && i < lines.length - 1) {
      held += raw.slice(0, -1)
      continue
    }
    try {
      const rule = ruleOf(held + raw, first)
      if (rule) rules.push(rule)
    } catch (error) {
      if (!(error instanceof HbaError)) throw error
      problems.push({ line: first, message: error.message })
    }
    held = ''
  }
  return { rules, problems }
}

/** The first rule that fits; undefined: nobody may. */
export function matchHba(
  rules: readonly HbaRule[],
  client: HbaClient,
  own: readonly OwnAddress[],
): HbaRule | undefined {
  const parsed = client.address === undefined ? undefined : parseIp(client.address)
  const address = parsed && unmapped(parsed)
  return rules.find(
    (rule) =>
      fitsConnection(rule, client, address, own) &&
      fitsDatabase(rule.databases, client) &&
      (rule.users.isAll || rule.users.names.includes(client.user)),
  )
}

function fitsDatabase(list: NameList, client: HbaClient): boolean {
  if (list.isAll || list.names.includes(client.database)) return true
  return list.isSameUser && client.user === client.database
}

function fitsConnection(
  rule: HbaRule,
  client: HbaClient,
  address: IpBytes | undefined,
  own: readonly OwnAddress[],
): boolean {
  if (client.address === undefined) return rule.type === 'local'
  if (rule.type === 'local' || !address) return false
  if (rule.type === 'hostssl' && !client.encrypted) return false
  if (rule.type === 'hostnossl' && client.encrypted) return false
  if (rule.address === 'all') return true
  if (rule.address === 'samehost' || rule.address === 'samenet') {
    return own.some((one) => isOwn(address, one, rule.address === 'samehost'))
  }
  return rule.address !== undefined && isInNetwork(address, rule.address)
}

function isOwn(address: IpBytes, own: OwnAddress, isHostOnly: boolean): boolean {
  const base = parseIp(own.address)
  const mask = parseIp(own.netmask)
  if (!base || !mask) return false
  const wanted = isHostOnly ? networkOf(base, base.length * 8) : { base, mask }
  return wanted !== undefined && isInNetwork(address, wanted)
}

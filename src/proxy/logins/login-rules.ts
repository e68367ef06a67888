/** How each client must prove who it is: HBA rules, users.toml, certificates, auth_query and pass-through, in this order. */
import { networkInterfaces } from 'node:os'
import { type HbaMethod, type HbaRule, matchHba, type OwnAddress } from '../../auth/hba.js'
import { equalTexts, isMd5Hash } from '../../auth/md5.js'
import { parseScramVerifier } from '../../auth/scram-verifier.js'
import { secretsOf } from '../../auth/user-table.js'
import type { LoadedConfig, User } from '../../config/loaded-config.js'
import { engineError } from '../../errors/engine-error.js'
import type { LoginProof, LoginRequest, LoginRules } from '../../session/login/login-rules.js'
import type { InForce } from '../in-force.js'
import type { AuthQueries } from './auth-queries.js'
import type { Guests } from './guests.js'

type Method = LoginRules['method']

const methodOfType = {
  scram: 'scram-sha-256',
  md5: 'md5',
  trust: 'trust',
  plain: 'plain',
} as const satisfies Record<string, Method>

const methodOfRule: Readonly<Record<Exclude<HbaMethod, 'reject'>, Method>> = {
  'scram-sha-256': 'scram-sha-256',
  md5: 'md5',
  trust: 'trust',
  password: 'plain',
  cert: 'trust',
}

export interface LoginRuleSources {
  inForce(): InForce
  readonly guests: Guests
  readonly authQueries: AuthQueries
}

/** @throws AUTH_NO_ENTRY, AUTH_REJECTED, AUTH_CERTIFICATE_*, AUTH_PLAIN_UNSAFE, AUTH_QUERY_FAILED */
export async function loginRulesFor(
  sources: LoginRuleSources,
  request: LoginRequest,
): Promise<LoginRules> {
  const { config, users } = sources.inForce()
  const { user, database } = request
  const rule = config.hba && hbaRuleFor(config.hba, request)
  if (config.admin.names.includes(database)) return consoleRules(config, user)
  const entry = users.find(user, database)
  const hasProved = checkCertificate(config, entry, rule, request)
  const method = hasProved ? 'trust' : methodFor(config, entry, rule)
  const knows = config.databases.some(({ name }) => name === database)
  if (!knows) {
    // As in PostgreSQL, only who has proved to be who it is learns that there is no such database.
    const refusal = engineError('PROXY_NO_DATABASE', { database })
    return { method, secrets: users.secretsAnywhere(user), known: false, refusal }
  }
  const secrets = entry ? secretsOf(entry) : []
  if (entry && (method === 'trust' || secrets.length > 0)) {
    return { method: fitting(method, secrets), secrets, known: true }
  }
  return await guestRules(sources, request, entry, method)
}

/** PostgreSQL, too, answers the method md5 by SCRAM for whom it has only a verifier. */
function fitting(method: Method, secrets: readonly string[]): Method {
  const hasClear = secrets.some((secret) => !parseScramVerifier(secret))
  return method === 'md5' && !hasClear ? 'scram-sha-256' : method
}

function methodFor(config: LoadedConfig, entry: User | undefined, rule: HbaRule | undefined) {
  if (rule && rule.method !== 'reject') return methodOfRule[rule.method]
  return methodOfType[entry?.authType ?? config.general.authType]
}

/** @throws AUTH_NO_ENTRY, AUTH_REJECTED */
function hbaRuleFor(rules: readonly HbaRule[], request: LoginRequest): HbaRule {
  const rule = matchHba(rules, request, ownAddresses(rules))
  if (rule && rule.method !== 'reject') return rule
  const facts = {
    address: request.address ?? '[local]',
    user: request.user,
    database: request.database,
    encryption: request.encrypted ? 'SSL encryption' : 'no encryption',
  }
  throw engineError(rule ? 'AUTH_REJECTED' : 'AUTH_NO_ENTRY', facts)
}

function ownAddresses(rules: readonly HbaRule[]): OwnAddress[] {
  const asked = rules.some(({ address }) => address === 'samehost' || address === 'samenet')
  return asked ? Object.values(networkInterfaces()).flatMap((found) => found ?? []) : []
}

/** True when the certificate alone lets the user in. @throws AUTH_CERTIFICATE_MISSING, AUTH_CERTIFICATE_FAILED */
function checkCertificate(
  config: LoadedConfig,
  entry: User | undefined,
  rule: HbaRule | undefined,
  { user, peer, address }: LoginRequest,
): boolean {
  // A Unix socket has no TLS, so nothing to show a certificate in.
  const byDefault = config.general.tlsClientCaCertificate !== undefined && address !== undefined
  const isRequired = byDefault && (entry?.clientCertificateRequired ?? true)
  const isProof = rule ? rule.method === 'cert' : entry?.identity !== undefined
  const mustShow = isRequired || rule?.clientCertificate !== undefined || rule?.method === 'cert'
  if (!peer) {
    if (mustShow) throw engineError('AUTH_CERTIFICATE_MISSING')
    return false
  }
  const name = entry?.identity ?? user
  const isSame = peer.commonName === name || peer.uris.includes(name)
  const mustBeSame = rule?.clientCertificate === 'verify-full' || (isProof && mustShow)
  if (mustBeSame && !isSame) throw engineError('AUTH_CERTIFICATE_FAILED', { user })
  return isProof && isSame
}

/** The console always asks for the password, whatever `auth_type` says; without one nobody gets in. */
function consoleRules({ admin }: LoadedConfig, user: string): LoginRules {
  const known = user === admin.user && admin.password !== undefined
  return {
    method: 'scram-sha-256',
    secrets: known && admin.password !== undefined ? [admin.password] : [],
    known,
  }
}

/** Of a user whose secret users.toml does not have: the servers know it, or nobody does. */
async function guestRules(
  sources: LoginRuleSources,
  request: LoginRequest,
  entry: User | undefined,
  method: Method,
): Promise<LoginRules> {
  const { config } = sources.inForce()
  const { user, database } = request
  const { authQueries } = sources
  const isAsked = authQueries.serves(database)
  // The next login looks again after a wrong proof, and after that of a stranger too: it must not take longer for the one.
  const failed = isAsked ? () => authQueries.forget(user, database) : undefined
  if (isAsked) {
    const secrets = await authQueries.secretsOf(user, database)
    if (secrets.length > 0) return { ...lookedUpRules(sources, request, secrets, method), failed }
  }
  if (config.general.passthroughAuth !== 'disabled') return passThrough(sources, request)
  // Trust would let in who cannot be told apart from a stranger.
  const mock = method === 'trust' && !entry ? 'scram-sha-256' : method
  return { method: mock, secrets: [], known: entry !== undefined, failed }
}

/** Makes the pools of a guest. Where nobody is configured it is the first by whom the schema can be read. */
async function admit(
  { guests, inForce }: LoginRuleSources,
  { user, database }: LoginRequest,
  proof: LoginProof,
): Promise<void> {
  guests.admit(user, database, proof)
  const known = inForce().knowledge.get(database)
  if (known && !known.isReady) await known.refresh()
}

function lookedUpRules(
  sources: LoginRuleSources,
  request: LoginRequest,
  secrets: readonly string[],
  method: Method,
): LoginRules {
  const isMd5 = secrets.every(isMd5Hash)
  return {
    // What is stored decides between the two, as in PostgreSQL; trust would leave us without a way into the servers.
    method: method === 'plain' ? 'plain' : isMd5 ? 'md5' : 'scram-sha-256',
    secrets,
    known: true,
    proved: async ({ password, scramKeys }) => {
      const [hash = ''] = secrets
      await admit(sources, request, scramKeys ? { scramKeys } : { password: password ?? hash })
    },
  }
}

/** The client's password is tried on the server itself. */
function passThrough(sources: LoginRuleSources, request: LoginRequest): LoginRules {
  const { guests } = sources
  const { user, database } = request
  const { passthroughAuth: mode } = sources.inForce().config.general
  const isSafe = request.encrypted || request.address === undefined || mode.includes('plain')
  if (!isSafe) throw engineError('AUTH_PLAIN_UNSAFE', { user })
  return {
    method: 'plain',
    secrets: [],
    known: true,
    verify: async (password) => {
      const before = guests.passwordOf(user, database)
      const isSame = before !== undefined && equalTexts(before, password)
      if (isSame && guests.isFresh(user, database)) return
      await guests.askServer(user, database, password)
      if (before !== undefined && !isSame && !mode.endsWith('allow_change')) {
        throw engineError('AUTH_PASSWORD_CHANGED', { user })
      }
    },
    proved: ({ password = '' }) => admit(sources, request, { password }),
  }
}

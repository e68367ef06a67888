/** Logins from HashiCorp Vault: dynamic ones, which Vault makes and ends, and static ones, whose password it rotates. */
import type { CredentialProvider, Lease } from './kept-credentials.js'
import { askJson, count, part, readToken, word } from './read-answer.js'

export interface VaultPlace {
  readonly url: string
  readonly authMethod: 'kubernetes' | 'approle'
  /** Mount of the method; its own name when absent. */
  readonly authMount?: string
  readonly kubernetesRole?: string
  readonly kubernetesJwtPath?: string
  readonly approleRoleId?: string
  readonly approleSecretIdFile?: string
  readonly namespace?: string
}

export interface VaultLogin {
  readonly kind: 'vault_dynamic' | 'vault_static'
  /** `database/creds/app` or `database/static-creds/app`. */
  readonly path: string
  readonly refreshPercent: number
}

/** Where Kubernetes puts the token of a pod. */
const POD_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token'
/** When an answer does not say how long it holds. */
const DEFAULT_LIFE_SEC = 60

/** `env` may hold VAULT_SECRET_ID. */
export function vaultProvider(
  place: VaultPlace,
  login: VaultLogin,
  env: Readonly<Record<string, string | undefined>>,
): CredentialProvider {
  const base = place.url.replace(/\/+$/, '')
  const common = place.namespace === undefined ? {} : { 'X-Vault-Namespace': place.namespace }
  return {
    name: `Vault ${base}/${login.path}`,
    refreshPercent: login.refreshPercent,
    fetch: async () => {
      const token = await vaultToken(base, place, common, env)
      const what = `the request for ${login.path}`
      const answer = await askJson(what, {
        url: `${base}/v1/${login.path}`,
        headers: { ...common, 'X-Vault-Token': token },
      })
      return leaseOf(what, answer)
    },
  }
}

function leaseOf(what: string, answer: Readonly<Record<string, unknown>>): Lease {
  const data = part(what, answer, 'data')
  const lifeSec = count(data, 'ttl') ?? count(answer, 'lease_duration') ?? DEFAULT_LIFE_SEC
  return {
    user: word(what, data, 'username'),
    password: word(what, data, 'password'),
    lifeMs: lifeSec * 1000,
  }
}

async function vaultToken(
  base: string,
  place: VaultPlace,
  headers: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const mount = place.authMount ?? place.authMethod
  const what = `the login at auth/${mount}`
  const answer = await askJson(what, {
    method: 'POST',
    url: `${base}/v1/auth/${mount}/login`,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(loginOf(place, env)),
  })
  return word(what, part(what, answer, 'auth'), 'client_token')
}

function loginOf(
  place: VaultPlace,
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  if (place.authMethod === 'kubernetes') {
    const jwt = readToken('the token of Kubernetes', place.kubernetesJwtPath ?? POD_TOKEN)
    return { role: place.kubernetesRole, jwt }
  }
  const secret =
    place.approleSecretIdFile === undefined
      ? env['VAULT_SECRET_ID']
      : readToken('the secret id', place.approleSecretIdFile)
  if (!secret)
    throw new Error('there is no secret id: set approle_secret_id_file or VAULT_SECRET_ID')
  return { role_id: place.approleRoleId, secret_id: secret }
}

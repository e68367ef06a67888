/** Azure workload identity: the token of a pod, exchanged for one that Azure Database for PostgreSQL takes as password. */
import type { CredentialProvider } from './kept-credentials.js'
import { askJson, count, readToken, word } from './read-answer.js'

const SCOPE = 'https://ossrdbms-aad.database.windows.net/.default'
const DEFAULT_AUTHORITY = 'https://login.microsoftonline.com/'
const DEFAULT_LIFE_SEC = 300

/** `env` holds what the webhook of workload identity puts into a pod: AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE, AZURE_AUTHORITY_HOST. */
export function azureProvider(
  env: Readonly<Record<string, string | undefined>>,
): CredentialProvider {
  const needed = (name: string): string => {
    const value = env[name]
    if (value) return value
    throw new Error(`${name} is not set`)
  }
  return {
    name: 'Azure workload identity',
    refreshPercent: 80,
    fetch: async () => {
      const authority = (env['AZURE_AUTHORITY_HOST'] ?? DEFAULT_AUTHORITY).replace(/\/+$/, '')
      const what = 'the request for a token'
      const answer = await askJson(what, {
        method: 'POST',
        url: `${authority}/${encodeURIComponent(needed('AZURE_TENANT_ID'))}/oauth2/v2.0/token`,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: needed('AZURE_CLIENT_ID'),
          client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          client_assertion: readToken('the token of the pod', needed('AZURE_FEDERATED_TOKEN_FILE')),
          scope: SCOPE,
        }).toString(),
      })
      const lifeMs = (count(answer, 'expires_in') ?? DEFAULT_LIFE_SEC) * 1000
      return { password: word(what, answer, 'access_token'), lifeMs }
    },
  }
}

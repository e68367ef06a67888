/** Each key of [vault] and of the users' server_auth, in a configuration: what Vault, scripted here, is asked because of it. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load-config.js'
import { configuredLogins } from '../../../src/proxy/databases/server-login.js'
import type { CredentialSource } from '../../../src/server/server-target.js'
import { waitFor } from '../../support/wait-for.js'

interface Heard {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly login: Record<string, string>
}

const LIFE_SEC = 10
const directory = mkdtempSync(join(tmpdir(), 'credential-keys-'))
const file = (name: string, text: string) => {
  writeFileSync(join(directory, name), text)
  return join(directory, name)
}
const secretFile = file('secret-id', 'secret of the file')
const tokenFile = file('token', 'token of the pod')

const heard: Heard[] = []
let vault: Server
let url: string
let files = 0

beforeAll(async () => {
  vault = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const path = request.url ?? ''
      heard.push({ path, headers: request.headers, login: body === '' ? {} : JSON.parse(body) })
      response.end(
        JSON.stringify(
          path.endsWith('/login')
            ? { auth: { client_token: 't' } }
            : { lease_duration: LIFE_SEC, data: { username: 'made', password: `of ${path}` } },
        ),
      )
    })
  })
  await new Promise<void>((resolve) => vault.listen(0, '127.0.0.1', resolve))
  const address = vault.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
})
afterAll(() => {
  vault.closeAllConnections()
  vault.close()
})

interface Lines {
  readonly vault: Record<string, string>
  readonly user: Record<string, string | number>
}

const toml = (lines: Record<string, string | number>) =>
  Object.entries(lines)
    .map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    .join('\n')

/** The login of the configuration's user, and the source of its secret. */
function loginOf({ vault: place, user }: Lines) {
  const base = join(directory, String(++files))
  writeFileSync(
    `${base}.toml`,
    `[[databases]]\nname = "app"\nhost = "127.0.0.1"\n[vault]\n${toml(place)}\n`,
  )
  writeFileSync(
    `${base}.users.toml`,
    `[[users]]\nname = "u"\ndatabase = "app"\npassword = "of the file"\n${toml(user)}\n`,
  )
  const config = loadConfig({
    configPath: `${base}.toml`,
    usersPath: `${base}.users.toml`,
    databaseUrls: [],
    env: {},
  })
  const env = {
    VAULT_SECRET_ID: 'secret of the environment',
    AWS_ACCESS_KEY_ID: 'AKIA',
    AWS_SECRET_ACCESS_KEY: 's',
  }
  const host = config.databases[0]!.shards[0]!.hosts[0]!
  return configuredLogins(config, env)(host, config.users[0]!)
}

const byRole = () => ({ url, auth_method: 'approle', approle_role_id: 'role' })
const ofPod = () => ({ url, auth_method: 'kubernetes', kubernetes_jwt_path: tokenFile })
const dynamic = { server_auth: 'vault_dynamic', server_vault_path: 'database/creds/app' }

/** What Vault hears of a login with these lines. */
async function heardOf(lines: Lines) {
  heard.length = 0
  await (loginOf(lines).credentials as CredentialSource).get()
  const [login, lease] = heard
  return { login: login!, lease: lease! }
}

test('vault.url, auth_method, approle_role_id, server_auth and server_vault_path', async () => {
  const { login, lease } = await heardOf({ vault: byRole(), user: dynamic })
  expect(login.path).toBe('/v1/auth/approle/login')
  expect(login.login).toEqual({ role_id: 'role', secret_id: 'secret of the environment' })
  expect(login.headers).not.toHaveProperty('x-vault-namespace')
  expect(lease.path).toBe('/v1/database/creds/app')
  expect(loginOf({ vault: byRole(), user: {} })).toEqual({ user: 'u', password: 'of the file' })
})

test('vault.auth_mount', async () => {
  const { login } = await heardOf({ vault: { ...byRole(), auth_mount: 'mine' }, user: dynamic })
  expect(login.path).toBe('/v1/auth/mine/login')
})

test('vault.namespace', async () => {
  const { login, lease } = await heardOf({
    vault: { ...byRole(), namespace: 'team' },
    user: dynamic,
  })
  expect([login, lease].map(({ headers }) => headers['x-vault-namespace'])).toEqual([
    'team',
    'team',
  ])
})

test('vault.approle_secret_id_file', async () => {
  const { login } = await heardOf({
    vault: { ...byRole(), approle_secret_id_file: secretFile },
    user: dynamic,
  })
  expect(login.login['secret_id']).toBe('secret of the file')
})

test('vault.kubernetes_jwt_path and kubernetes_role', async () => {
  const { login } = await heardOf({ vault: { ...ofPod(), kubernetes_role: 'app' }, user: dynamic })
  expect(login.path).toBe('/v1/auth/kubernetes/login')
  expect(login.login).toEqual({ role: 'app', jwt: 'token of the pod' })
})

test('users.vault_refresh_percent', async () => {
  heard.length = 0
  const user = { ...dynamic, vault_refresh_percent: 1 }
  const source = loginOf({ vault: byRole(), user }).credentials as CredentialSource
  // a hundredth of its life; by default it would be kept for 8 s
  await waitFor(
    async () => {
      await source.get()
      return heard.length >= 4
    },
    { deadlineMs: LIFE_SEC * 500 },
  )
})

test('users.server_iam_region', async () => {
  const user = { server_auth: 'rds_iam', server_iam_region: 'eu-south-7' }
  const source = loginOf({ vault: byRole(), user }).credentials as CredentialSource
  expect(JSON.stringify(await source.get())).toContain('eu-south-7')
  const without = loginOf({ vault: byRole(), user: { server_auth: 'rds_iam' } })
  await expect((without.credentials as CredentialSource).get()).rejects.toThrow(/region/)
})

/**
 * Users that are not in users.toml, or are there without a secret, and have proved themselves to the servers (pass-through)
 * or by what the servers keep of them (auth_query). Their pools are made at the login and dropped when nobody uses them.
 */
import type { Clock } from '../../base/clock.js'
import { bareUser } from '../../config/compile/bare-user.js'
import type { LoadedConfig, User } from '../../config/loaded-config.js'
import { isEngineError, toEngineError } from '../../errors/engine-error.js'
import type { OpenServer, PoolDefinition } from '../../pool/definition.js'
import { type Pools, userKeyOf } from '../../pool/pool-map.js'
import type { ServerTarget } from '../../server/server-target.js'
import type { LoginProof } from '../../session/login/login-rules.js'
import type { ClientRegistry } from '../clients/client-registry.js'
import { defineGuestPool } from '../databases/define-pools.js'
import { firstThatAnswers } from '../databases/first-that-answers.js'
import type { InForce } from '../in-force.js'

/** Between looks at who has gone. */
const SWEEP_MS = 1000

interface Guest {
  readonly user: string
  readonly database: string
  readonly proof: LoginProof
  readonly provedAtMs: number
}

export interface GuestParts {
  readonly pools: Pools
  readonly clients: ClientRegistry
  readonly openServer: OpenServer
  readonly clock: Clock
  inForce(): InForce
}

export class Guests {
  readonly #parts: GuestParts
  readonly #guests = new Map<string, Guest>()
  #isSweeping = false

  constructor(parts: GuestParts) {
    this.#parts = parts
  }

  /** The user as if it stood in users.toml; undefined when it is no guest. */
  find(user: string, database: string): User | undefined {
    if (!this.#guests.has(userKeyOf(user, database))) return undefined
    return userOf(this.#parts.inForce(), user, database)
  }

  /** The password that the servers have accepted. */
  passwordOf(user: string, database: string): string | undefined {
    return this.#guests.get(userKeyOf(user, database))?.proof.password
  }

  /** Whether its proof is recent enough to be believed once more. */
  isFresh(user: string, database: string): boolean {
    const guest = this.#guests.get(userKeyOf(user, database))
    const limitMs = this.#parts.inForce().config.general.authQueryTtlMs
    return guest !== undefined && this.#parts.clock.monotonicMs() - guest.provedAtMs < limitMs
  }

  /** Makes its pools, or gives them what was proved now. */
  admit(user: string, database: string, proof: LoginProof): void {
    const key = userKeyOf(user, database)
    const provedAtMs = this.#parts.clock.monotonicMs()
    this.#guests.set(key, { user, database, proof, provedAtMs })
    this.#parts.pools.put(this.#define(this.#parts.inForce(), user, database, proof))
    this.#sweepLater()
  }

  /** Logs in to the server with this password. @throws the server's own error; AUTH_UNCHECKED; what connecting throws */
  async askServer(user: string, database: string, password: string): Promise<void> {
    const { inForce, openServer } = this.#parts
    const definition = this.#define(inForce(), user, database, { password })
    const { timeoutMs } = definition.connect
    const hosts = [...(definition.shards[0]?.hosts ?? [])].sort(primariesFirst)
    const targets = hosts.map(({ target }) => ({ ...target, mustAskPassword: true }))
    const ask = async (target: ServerTarget) => (await openServer(target, { timeoutMs })).close()
    try {
      await firstThatAnswers(database, targets, ask, isVerdict)
    } catch (error) {
      if (isVerdict(error)) this.#forgetIfNoLonger(user, database, password)
      throw error
    }
  }

  /** Of all guests under a configuration; those that it does not let in are left out. */
  definitions(config: LoadedConfig, next: InForce): PoolDefinition[] {
    return [...this.#guests.values()].flatMap(({ user, database, proof }) =>
      mayStay(config, user, database) ? this.#define(next, user, database, proof) : [],
    )
  }

  /** After a new configuration is in force. */
  keepOnlyAllowed(): void {
    const { config } = this.#parts.inForce()
    for (const [key, { user, database }] of this.#guests) {
      if (!mayStay(config, user, database)) this.#guests.delete(key)
    }
  }

  #define(from: InForce, user: string, database: string, proof: LoginProof): PoolDefinition {
    return defineGuestPool(from.config, database, userOf(from, user, database), proof)
  }

  /** The server has taken back a password that it accepted: nobody else gets in with it. */
  #forgetIfNoLonger(user: string, database: string, password: string): void {
    const key = userKeyOf(user, database)
    if (this.#guests.get(key)?.proof.password !== password) return
    this.#guests.delete(key)
    this.#parts.pools.remove(user, database)
  }

  #sweepLater(): void {
    if (this.#isSweeping) return
    this.#isSweeping = true
    this.#parts.clock.after(SWEEP_MS, () => {
      this.#isSweeping = false
      this.#sweep()
      if (this.#guests.size > 0) this.#sweepLater()
    })
  }

  #sweep(): void {
    const { pools, clients, clock } = this.#parts
    const nowMs = clock.monotonicMs()
    const here = new Set(
      [...clients.all()].map(({ client }) => userKeyOf(client.user, client.database)),
    )
    for (const [key, { user, database, provedAtMs }] of this.#guests) {
      const servers = [...pools.all({ user, database })].map(({ pool }) => pool.snapshot())
      const isUsed = servers.some(({ total, opening, waiting }) => total + opening + waiting > 0)
      if (here.has(key) || isUsed || nowMs - provedAtMs < SWEEP_MS) continue
      this.#guests.delete(key)
      pools.remove(user, database)
    }
  }
}

const primariesFirst = (a: { role: string }, b: { role: string }): number =>
  Number(b.role === 'primary') - Number(a.role === 'primary')

/** The server has spoken: another host would say the same. */
function isVerdict(error: unknown): boolean {
  return isEngineError(error) &&
    (error.code === 'SERVER_SAID_NO' || error.code === 'AUTH_UNCHECKED')
    ? !toEngineError(error).sqlstate.startsWith('57')
    : false
}

function mayStay(config: LoadedConfig, user: string, database: string): boolean {
  if (!config.databases.some(({ name }) => name === database)) return false
  const entries = config.users.filter(({ databases }) => databases.includes(database))
  const own = entries.find(({ name }) => name === user)
  if (own && (own.passwords.length > 0 || own.passwordHash !== undefined)) return false
  const isLookedUp = entries.some(({ authQuery }) => authQuery !== undefined)
  return isLookedUp || config.general.passthroughAuth !== 'disabled'
}

/** Its entry, or what an entry with nothing but a name would give. */
const userOf = ({ config, users }: InForce, name: string, database: string): User =>
  users.find(name, database) ?? bareUser(config.general, name, database)

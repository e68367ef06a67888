import { describe, expect, it } from 'vitest'
import { ClientRegistry } from '../../../../src/proxy/clients/client-registry.js'
import { parseSearchPath } from '../../../../src/proxy/databases/start-checks.js'
import type { ClientHandle } from '../../../../src/session/environment.js'

const figures = {
  queries: 1,
  transactions: 1,
  twoPhase: 0,
  errors: 0,
  bytesReceived: 2,
  bytesSent: 3,
  waitMs: 0,
  queryMs: 0,
  transactionMs: 0,
  idleTransactionMs: 0,
}
const client = (database = 'app'): ClientHandle =>
  ({ user: 'u', database, figures: { ...figures } }) as unknown as ClientHandle

describe('client registry', () => {
  it('finds a client by its key only', () => {
    const registry = new ClientRegistry()
    const one = client()
    const identity = registry.register(one, false)
    expect(registry.byKey(identity.processId, identity.cancelKey)).toBe(one)
    const wrong = Buffer.from(identity.cancelKey)
    wrong[0] = (wrong[0] ?? 0) ^ 1
    expect(registry.byKey(identity.processId, wrong)).toBeUndefined()
    expect(registry.byKey(identity.processId, Buffer.alloc(0))).toBeUndefined()
    expect(registry.byKey(identity.processId + 1, identity.cancelKey)).toBeUndefined()
  })

  it('counts clients without consoles, and tells when the last has gone', async () => {
    const registry = new ClientRegistry()
    const console = registry.register(client('pgdog'), true)
    const one = registry.register(client(), false)
    const two = registry.register(client(), false)
    expect(registry.size).toBe(2)
    let isEmpty = false
    const waiting = registry.whenEmpty().then(() => {
      isEmpty = true
    })
    one.leave()
    one.leave()
    await Promise.resolve()
    expect([registry.size, isEmpty]).toEqual([1, false])
    two.leave()
    await waiting
    console.leave()
    expect(registry.size).toBe(0)
  })

  it('keeps what clients did after they have gone', () => {
    const registry = new ClientRegistry()
    registry.register(client(), false).leave()
    registry.register(client(), false)
    expect(registry.usage()).toEqual([
      {
        user: 'u',
        database: 'app',
        ...figures,
        queries: 2,
        transactions: 2,
        bytesReceived: 4,
        bytesSent: 6,
      },
    ])
  })
})

it('reads a search_path as PostgreSQL prints it', () => {
  expect(parseSearchPath('"$user", public')).toEqual(['$user', 'public'])
  expect(parseSearchPath('Abc,"Abc","a ""b"", c"')).toEqual(['abc', 'Abc', 'a "b", c'])
  expect(parseSearchPath('')).toEqual([])
})

it('B16: as many are let in at once as the limit allows, those who log in counted', () => {
  const registry = new ClientRegistry()
  expect([registry.admit(2), registry.admit(2), registry.admit(2)]).toEqual([true, true, false])
  const identity = registry.register(client(), false)
  registry.loggedIn()
  expect(registry.admit(2)).toBe(false)
  registry.loggedIn()
  expect(registry.admit(2)).toBe(true)
  identity.leave()
  expect(registry.admit(2)).toBe(true)
})

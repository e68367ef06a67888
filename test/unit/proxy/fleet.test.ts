import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { Cancels } from '../../../src/proxy/clients/cancels.js'
import { ClientRegistry } from '../../../src/proxy/clients/client-registry.js'
import {
  alone,
  MAX_WORKERS,
  ownId,
  ProcessIds,
  sharedId,
  type WorkerPlace,
} from '../../../src/proxy/fleet.js'
import type { ClientHandle } from '../../../src/session/environment.js'

describe('process ids', () => {
  const secret = randomBytes(32)
  const ids = (number: number, count: number) => new ProcessIds({ number, count }, secret)

  it('B11: every worker reads from an id which worker gave it', () => {
    for (const count of [2, 3, 64, MAX_WORKERS]) {
      for (const number of [0, 1, count - 1]) {
        const id = ids(number, count).make()
        expect(id).toBeGreaterThan(0)
        expect(id).toBeLessThanOrEqual(0x7fff_ffff)
        for (const reader of [0, count - 1]) expect(ids(reader, count).ownerOf(id)).toBe(number)
      }
    }
  })

  it('B11: an id that no worker can have given has no owner', () => {
    const owners = Array.from({ length: 2000 }, (_, i) => ids(0, 2).ownerOf(i * 1_000_003))
    expect(owners).toContain(undefined)
    expect(ids(0, 2).ownerOf(-1)).toBeUndefined()
  })

  it('without the secret an id does not tell its worker', () => {
    const high = new Set(Array.from({ length: 200 }, () => ids(1, 4).make() >>> 21))
    expect(high.size).toBeGreaterThan(100)
  })

  it('alone, every id is our own', () => {
    expect(new ProcessIds().ownerOf(12345)).toBe(0)
  })
})

it('numbers of one worker are unique among all', () => {
  const place: WorkerPlace = { number: 2, count: 3 }
  expect(sharedId(place, 5)).toBe(17)
  expect(ownId(place, 17)).toBe(5)
  expect(ownId({ number: 1, count: 3 }, 17)).toBeUndefined()
  expect([sharedId(alone, 7), ownId(alone, 7)]).toEqual([7, 7])
})

describe('cancels', () => {
  const secret = randomBytes(32)
  const worker = (number: number, forwarded: number[] = []) => {
    const place = { number, count: 2 }
    const processIds = new ProcessIds(place, secret)
    const clients = new ClientRegistry(processIds)
    let cancelled = 0
    const handle = { user: 'u', database: 'd', cancel: () => void cancelled++ }
    const identity = clients.register(handle as unknown as ClientHandle, false)
    const cancels = new Cancels({
      clients,
      processIds,
      place,
      forward: async (to) => void forwarded.push(to),
    })
    return { identity, cancels, cancelled: () => cancelled }
  }

  it('B9: a cancel for a client of another worker is passed on, once', async () => {
    const seen: number[] = []
    const owner = worker(0)
    const receiver = worker(1, seen)
    const { processId, cancelKey } = owner.identity
    await receiver.cancels.byKey(processId, cancelKey)
    expect(seen).toEqual([0])
    expect(owner.cancelled()).toBe(0)
    await owner.cancels.ours(processId, cancelKey)
    expect(owner.cancelled()).toBe(1)
    // What arrives here by mistake goes no further.
    await receiver.cancels.ours(processId, cancelKey)
    expect(seen).toEqual([0])
  })

  it('B11: a wrong key cancels nothing and is not passed on', async () => {
    const seen: number[] = []
    const owner = worker(0, seen)
    const wrong = Buffer.from(owner.identity.cancelKey)
    wrong[0] = (wrong[0] ?? 0) ^ 1
    await owner.cancels.byKey(owner.identity.processId, wrong)
    expect([owner.cancelled(), seen]).toEqual([0, []])
  })
})

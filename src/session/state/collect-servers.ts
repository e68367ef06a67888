/**
 * Servers of several shards for one statement, all or none (hard-parts §3.4): taken in ascending order of their shards,
 * and all given back, unused, when a transaction that has work on other servers waits for one of them.
 */
import { engineError } from '../../errors/engine-error.js'

type Role = 'primary' | 'any'

/** The servers of one client, as they are collected. */
export interface Collecting<Held> {
  readonly size: number
  readonly owner: { order: number; giveBack: (() => void) | undefined }
  /** How often a wait was ended from outside. */
  readonly stops: number
  /** It has made way for a transaction that waited. */
  isSentBack: boolean
  acquire(shard: number, role: Role): Held | Promise<Held>
  release(one: Held): void
  leaveQueue(): void
  /** Resolves when what was released can be had by others. */
  whenGivenBack(): Promise<void>
}

/** @throws what a checkout does */
export async function collectServers<Held>(
  held: Collecting<Held>,
  shards: readonly number[],
  role: Role,
): Promise<Held[]> {
  if (held.size > 0 || shards.length < 2) return takeEach(held, shards, role)
  const { stops } = held
  try {
    for (;;) {
      const all = await collect(held, shards, role)
      if (all) return all
      if (held.stops !== stops) throw engineError('POOL_CHECKOUT_ABORTED')
      // else it would be asked to make way again, for the same server, without end
      await held.whenGivenBack()
      if (held.stops !== stops) throw engineError('POOL_CHECKOUT_ABORTED')
      // ahead of those that have only come, behind those that it made way for
      held.isSentBack = true
    }
  } finally {
    held.isSentBack = false
  }
}

/** A transaction with work on some of them cannot give those back: a cycle ends one of its members. */
async function takeEach<Held>(
  held: Collecting<Held>,
  shards: readonly number[],
  role: Role,
): Promise<Held[]> {
  const all: Held[] = []
  for (const shard of shards) all.push(await held.acquire(shard, role))
  return all
}

/** undefined: it had to give back what it had. */
async function collect<Held>(
  held: Collecting<Held>,
  shards: readonly number[],
  role: Role,
): Promise<Held[] | undefined> {
  const all: Held[] = []
  let isBack = false
  held.owner.giveBack = () => {
    held.owner.giveBack = undefined
    isBack = true
    for (const one of all) held.release(one)
    held.leaveQueue()
  }
  try {
    for (const shard of shards) {
      const next = held.acquire(shard, role)
      const one = next instanceof Promise ? await next : next
      if (isBack) {
        held.release(one)
        return undefined
      }
      all.push(one)
    }
    return all
  } catch (error) {
    if (isBack) return undefined
    throw error
  } finally {
    held.owner.giveBack = undefined
  }
}

/**
 * Callers that hold resources of one pool and wait for another's can wait for each other for ever (hard-parts §3.4).
 * Finds them, and says who is to give way: the youngest.
 */
import type { Owner } from './pool-types.js'
import { settle, type Waiter } from './wait-queue.js'

/** What a pool knows of those who hold and wait. */
export interface Standing {
  /** Hold resources of other pools and wait for one of this. */
  readonly waiting: readonly Waiter<never>[]
  /** Of each resource that is lent; undefined: of nobody that may wait. */
  readonly owners: readonly (Owner | undefined)[]
  /** One is idle, or can be opened. */
  readonly hasFree: boolean
}

interface Blocked {
  readonly owner: Owner
  readonly waiter: Waiter<never>
  readonly place: Standing
}

/** The youngest of those that wait for nobody but each other; undefined: everybody can go on. */
export function youngestOfCycle(places: readonly Standing[]): Waiter<never> | undefined {
  let blocked: Blocked[] = []
  for (const place of places) {
    for (const waiter of place.waiting) {
      if (waiter.owner) blocked.push({ owner: waiter.owner, waiter, place })
    }
  }
  for (;;) {
    const stuck = new Set(blocked.map(({ owner }) => owner))
    const left = blocked.filter(
      ({ place }) => !place.hasFree && place.owners.every((owner) => owner && stuck.has(owner)),
    )
    if (left.length === blocked.length) break
    blocked = left
  }
  let youngest = blocked[0]
  for (const one of blocked) if (youngest && one.owner.order > youngest.owner.order) youngest = one
  return youngest?.waiter
}

/** Those that have used nothing of what they hold give it back to those that have work on other servers: as many as wait, the youngest first. */
export function makeWay({ waiting, owners }: Standing): void {
  const atWork = waiting.filter(({ owner }) => owner?.giveBack === undefined).length
  if (atWork === 0) return
  const unused = owners.flatMap((owner) => (owner?.giveBack ? [owner] : []))
  unused.sort((a, b) => b.order - a.order)
  for (const owner of unused.slice(0, atWork)) owner.giveBack?.()
}

/** Ends the wait with an error. */
export function endWait(waiter: Waiter<never>, error: unknown): void {
  if (!settle(waiter)) return
  waiter.queue?.remove(waiter)
  waiter.reject(error)
}

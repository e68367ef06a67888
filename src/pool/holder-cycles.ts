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

/** The youngest of those that wait for each other in a circle; undefined: everybody can go on. */
export function youngestOfCycle(places: readonly Standing[]): Waiter<never> | undefined {
  const blocked = blockedIn(places)
  let youngest: Blocked | undefined
  for (const one of blocked) {
    // who waits behind a circle without being of it would give way in vain
    const isYounger = !youngest || one.owner.order > youngest.owner.order
    if (isYounger && waitsForItself(one, blocked)) youngest = one
  }
  return youngest?.waiter
}

/** Those that wait for nobody who can go on. */
function blockedIn(places: readonly Standing[]): readonly Blocked[] {
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
    if (left.length === blocked.length) return blocked
    blocked = left
  }
}

function waitsForItself(start: Blocked, blocked: readonly Blocked[]): boolean {
  const seen = new Set<Owner>()
  const open: (Owner | undefined)[] = [...start.place.owners]
  for (let owner = open.pop(); owner; owner = open.pop()) {
    if (owner === start.owner) return true
    if (seen.has(owner)) continue
    seen.add(owner)
    for (const one of blocked) if (one.owner === owner) open.push(...one.place.owners)
  }
  return false
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

/**
 * Limits that several pools share (`max_db_connections`, `max_user_connections`): each connection, from its opening to
 * its end, takes a place. A pool that finds none has another give up an idle one, or is told when a place is free.
 */

export interface RoomUser {
  /** Closes the resource that was idle longest; false: none is idle. */
  giveUpIdle(): boolean
  /** A place may be free. */
  roomFreed(): void
}

export class Room {
  limit: number
  #taken = 0
  readonly #users = new Set<RoomUser>()
  /** In the order in which they found no place. */
  readonly #wanting = new Set<RoomUser>()

  constructor(limit: number) {
    this.limit = limit
  }

  get taken(): number {
    return this.#taken
  }

  join(user: RoomUser): void {
    this.#users.add(user)
  }

  leave(user: RoomUser): void {
    this.#users.delete(user)
    this.#wanting.delete(user)
  }

  /** Takes a place, at the cost of an idle resource of another pool when there is no other. */
  take(user: RoomUser): boolean {
    if (this.#taken >= this.limit) {
      for (const other of this.#users) if (other !== user && other.giveUpIdle()) break
    }
    if (this.#taken >= this.limit) {
      this.#wanting.add(user)
      return false
    }
    this.#wanting.delete(user)
    this.#taken++
    return true
  }

  /** Whether another pool waits for what `user` would keep idle. */
  isWantedBesides(user: RoomUser): boolean {
    return this.#wanting.size > (this.#wanting.has(user) ? 1 : 0)
  }

  free(): void {
    this.#taken--
    const [next] = this.#wanting
    if (!next) return
    this.#wanting.delete(next)
    next.roomFreed()
  }
}

/** All limits that one pool is under. */
export class Rooms {
  readonly #rooms: readonly Room[]

  constructor(rooms: readonly Room[]) {
    this.#rooms = rooms
  }

  join(user: RoomUser): void {
    for (const room of this.#rooms) room.join(user)
  }

  leave(user: RoomUser): void {
    for (const room of this.#rooms) room.leave(user)
  }

  /** A place in each, or in none. */
  take(user: RoomUser): boolean {
    for (const [i, room] of this.#rooms.entries()) {
      if (room.take(user)) continue
      for (const taken of this.#rooms.slice(0, i)) taken.free()
      return false
    }
    return true
  }

  isWantedBesides(user: RoomUser): boolean {
    return this.#rooms.some((room) => room.isWantedBesides(user))
  }

  free(): void {
    for (const room of this.#rooms) room.free()
  }
}

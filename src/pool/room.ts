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

  /** Takes a place; when somebody waits for it also at the cost of an idle resource of another pool. */
  take(user: RoomUser, isWanted: boolean): boolean {
    if (this.#taken >= this.limit && isWanted) {
      this.#wanting.add(user)
      for (const other of this.#users) if (other !== user && other.giveUpIdle()) break
    }
    if (this.#taken >= this.limit) return false
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
    // First come first served; who wants it no more lets it pass.
    for (const next of [...this.#wanting]) {
      if (this.#taken >= this.limit) return
      this.#wanting.delete(next)
      next.roomFreed()
    }
  }
}

/** All limits that one pool is under; none at all by default. */
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
  take(user: RoomUser, isWanted: boolean): boolean {
    for (const [i, room] of this.#rooms.entries()) {
      if (room.take(user, isWanted)) continue
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

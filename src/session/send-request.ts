/** How a request reaches a held server: at once, behind what the server must hear first, or when that was answered. */
import type { Expectation } from '../executor/relay.js'
import type { HeldServer } from './state/held-servers.js'
import type { Prelude } from './state/prelude.js'
import type { Outgoing } from './state/seen-positions.js'

/** A request up to its end, behind `prelude`. */
export function sendBehind(
  held: HeldServer,
  prelude: Prelude,
  { pieces, expectations, syncs }: Outgoing,
): void {
  held.server.isUnsynced = syncs === 0
  if (!prelude.mustWait) {
    for (const expectation of prelude.expectations) held.relay.expect(expectation)
    for (const expectation of expectations) held.relay.expect(expectation)
    const all = prelude.bytes.length === 0 ? pieces : [...prelude.bytes, ...pieces]
    held.server.write(
      all.length === 1 ? (all[0] as Buffer) : Buffer.concat(all),
      prelude.syncs + syncs,
    )
    return
  }
  const later = Buffer.concat(pieces)
  held.deferred = [() => sendNow(held, later, expectations, syncs)]
  const last = prelude.expectations.length - 1
  for (const [index, expectation] of prelude.expectations.entries()) {
    held.relay.expect(
      index < last
        ? expectation
        : {
            ...expectation,
            done: () => {
              expectation.done?.()
              const deferred = held.deferred ?? []
              held.deferred = undefined
              for (const write of deferred) write()
            },
          },
    )
  }
  held.server.write(Buffer.concat(prelude.bytes), prelude.syncs)
}

/** To a server that has heard all it must. */
export function sendNow(
  held: HeldServer,
  bytes: Buffer,
  expectations: Expectation[],
  syncs: number,
): void {
  for (const expectation of expectations) held.relay.expect(expectation)
  if (bytes.length === 0) return
  held.server.isUnsynced = syncs === 0
  held.server.write(bytes, syncs)
}

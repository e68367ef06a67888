/** A note in a source's WAL: when it comes out of the stream, all that was committed before it has come out too. */
import { randomBytes } from 'node:crypto'
import { adminQuery } from '../pg/admin-query.js'
import { type Follower, MARKER_PREFIX } from './follow/follower.js'
import { type ReshardSide, withShard } from './side.js'

/** Writes a marker on one source; resolves once it is flushed there. */
async function writeMarker(side: ReshardSide, shard: number, token: string): Promise<void> {
  const source = side.shards[shard] as (typeof side.shards)[number]
  await withShard(
    source,
    async (client) => {
      await adminQuery(client, 'SELECT pg_logical_emit_message(true, $1, $2)', [
        MARKER_PREFIX,
        token,
      ])
    },
    // The commit must be flushed to be streamed, whatever the database sets; standbys need not have it.
    { synchronous_commit: 'local' },
  )
}

/**
 * Resolves when everything that was committed on every source before this call is committed on the targets.
 * The followers must not be held.
 */
export async function catchUp(side: ReshardSide, followers: readonly Follower[]): Promise<void> {
  const token = randomBytes(8).toString('hex')
  const passed = Promise.all(followers.map((follower) => follower.marker(token)))
  passed.catch(() => undefined)
  await Promise.all(followers.map((_, shard) => writeMarker(side, shard, token)))
  await passed
}

/** Makes the streams move on past the present position of their sources. */
export async function nudge(side: ReshardSide): Promise<void> {
  await Promise.all(side.shards.map((_, shard) => writeMarker(side, shard, 'nudge')))
}

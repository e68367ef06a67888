/** Two-phase commit over the connections of a load: what `executor/two-phase.ts` needs, on clients of pg. */
import type pg from 'pg'
import { type Clock, systemClock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { commitTwoPhase, type TwoPhaseCommit } from '../../executor/two-phase.js'
import {
  readTwoPhaseIdentity,
  type TwoPhaseIdentity,
  type TwoPhaseServer,
  type WithServer,
} from '../../executor/two-phase-identity.js'
import { RECOVERY_GRACE_MS, recoverPrepared } from '../../executor/two-phase-recovery.js'
import { closePg } from '../../pg/admin-query.js'
import { clientWhere, connectPg } from '../../pg/connect.js'
import { isServerError, serverFailure } from '../../pg/server-error.js'

/** How long shards that were lost in the second phase are tried. */
const WAIT_MS = 10_000

const asText = { getTypeParser: () => (value: string) => value }

function serverOf(client: pg.Client): TwoPhaseServer {
  return {
    query: async (sql) => {
      try {
        const result = (await client.query({
          text: sql,
          rowMode: 'array',
          types: asText as unknown as pg.CustomTypesConfig,
        })) as unknown as
          | pg.QueryArrayResult<(string | null)[]>
          | pg.QueryArrayResult<(string | null)[]>[]
        const all = Array.isArray(result) ? result : [result]
        return all.map(({ rows, command }) => ({ rows, tag: tagOf(command) }))
      } catch (error) {
        const failure = serverFailure(error, clientWhere(client))
        if (!isServerError(error)) throw failure
        throw Object.assign(failure, { fields: { S: error.severity, C: error.code } })
      }
    },
  }
}

/** pg keeps the first word of a tag only. */
const tagOf = (command: string): string => (command === 'PREPARE' ? 'PREPARE TRANSACTION' : command)

/** Commits all shards of a load, or none. */
export class LoadCommit {
  readonly #urls: readonly string[]
  readonly #identity: TwoPhaseIdentity
  readonly #clock: Clock

  private constructor(urls: readonly string[], identity: TwoPhaseIdentity, clock: Clock) {
    this.#urls = urls
    this.#identity = identity
    this.#clock = clock
  }

  /**
   * Also ends what a killed run has left prepared.
   * @throws TWO_PHASE_NOT_READY; COPY_RECOVERED when that has committed rows, which may be those of this load
   */
  static async open(urls: readonly string[], clock: Clock = systemClock): Promise<LoadCommit> {
    const withServer = onNewClients(urls)
    const identity = await readTwoPhaseIdentity('copy-shard', urls.length, withServer)
    const found = await recoverPrepared({ identity, withServer })
    let { committed } = found
    if (found.left.some(({ ageMs }) => ageMs < RECOVERY_GRACE_MS)) {
      // Too young to be touched: it may be what a run has left that was killed a moment ago.
      await clock.sleep(RECOVERY_GRACE_MS)
      committed += (await recoverPrepared({ identity, withServer })).committed
    }
    if (committed > 0) throw engineError('COPY_RECOVERED', { shards: committed })
    return new LoadCommit(urls, identity, clock)
  }

  /** `clients` have their transactions open, in the order of the shards. @returns shards that could not be told yet */
  async commit(
    clients: readonly pg.Client[],
    onStep?: TwoPhaseCommit['onStep'],
  ): Promise<readonly number[]> {
    const parts = clients.map((client, shard) => ({ shard, server: serverOf(client) }))
    const { pending } = await commitTwoPhase(parts, {
      identity: this.#identity,
      withServer: onNewClients(this.#urls),
      clock: this.#clock,
      waitMs: WAIT_MS,
      ...(onStep === undefined ? {} : { onStep }),
    })
    return pending
  }
}

const onNewClients =
  (urls: readonly string[]): WithServer =>
  async (shard, work) => {
    const client = await connectPg(urls[shard] as string, { applicationName: 'pgshard copy-shard' })
    try {
      return await work(serverOf(client))
    } finally {
      await closePg(client)
    }
  }

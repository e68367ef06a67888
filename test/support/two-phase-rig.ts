/** Three shards with schema pgshard, one row a shard and transaction, and what must hold of them afterwards. */
import { systemClock } from '../../src/base/clock.js'
import {
  commitTwoPhase,
  type TwoPhaseCommit,
  type TwoPhaseOutcome,
  type TwoPhasePart,
  type TwoPhaseStep,
} from '../../src/executor/two-phase.js'
import {
  readTwoPhaseIdentity,
  type TwoPhaseIdentity,
  type WithServer,
} from '../../src/executor/two-phase-identity.js'
import { type RecoveryReport, recoverPrepared } from '../../src/executor/two-phase-recovery.js'
import { openServer } from '../../src/server/open-server.js'
import type { ServerConnection } from '../../src/server/server-connection.js'
import { prepareSetup } from '../../src/setup/prepare-setup.js'
import type { TestPostgres } from './postgres.js'

export const SHARDS = [0, 1, 2] as const

export class TwoPhaseRig {
  readonly #postgres: TestPostgres
  readonly #user: string
  identity: TwoPhaseIdentity = { clusterId: '', shardIds: [] }
  #count = 0

  constructor(postgres: TestPostgres, user = postgres.user) {
    this.#postgres = postgres
    this.#user = user
  }

  /** Makes the schema, and table `entry (tx, shard)`. */
  async prepare(): Promise<void> {
    const { servers, database } = this.#postgres
    const hosts = servers.map(({ host, port }, number) => ({
      number,
      hosts: [{ host, port, database, role: 'primary' as const, weight: 255 }],
    }))
    const user = { databases: ['bank'], passwords: [], schemaAdmin: true }
    await prepareSetup(
      {
        databases: [{ name: 'bank', shards: hosts }],
        sharding: new Map(),
        users: [
          { ...user, name: this.#postgres.user },
          { ...user, name: this.#user, schemaAdmin: false },
        ],
      },
      { guards: false, dryRun: false, drop: false },
    ).run()
    for (const shard of SHARDS) {
      await this.#postgres.query(
        `CREATE TABLE IF NOT EXISTS entry (tx int, shard int, UNIQUE (tx, shard) DEFERRABLE INITIALLY DEFERRED);
         GRANT ALL ON entry TO PUBLIC`,
        [],
        shard,
      )
    }
    this.identity = await readTwoPhaseIdentity('bank', SHARDS.length, this.withServer)
  }

  open(shard: number): Promise<ServerConnection> {
    const { host, port } = this.#postgres.servers[shard] as { host: string; port: number }
    return openServer(
      { host, port, user: this.#user, database: this.#postgres.database },
      { timeoutMs: 2000 },
    )
  }

  readonly withServer: WithServer = async (shard, work) => {
    const server = await this.open(shard)
    try {
      return await work(server)
    } finally {
      server.close()
    }
  }

  /** A transaction with a row on each of `shards`, open. */
  async begin(
    shards: readonly number[] = SHARDS,
  ): Promise<{ tx: number; parts: (TwoPhasePart & { server: ServerConnection })[] }> {
    const tx = ++this.#count
    const parts = await Promise.all(
      shards.map(async (shard) => {
        const server = await this.open(shard)
        await server.query(`BEGIN; INSERT INTO entry VALUES (${tx}, ${shard})`)
        return { shard, server }
      }),
    )
    return { tx, parts }
  }

  commit(
    parts: readonly TwoPhasePart[],
    more: Partial<TwoPhaseCommit> = {},
  ): Promise<TwoPhaseOutcome> {
    return commitTwoPhase(parts, {
      identity: this.identity,
      withServer: this.withServer,
      clock: systemClock,
      waitMs: 15_000,
      ...more,
    })
  }

  /** On which shards the rows of a transaction are. */
  async landed(tx: number): Promise<number[]> {
    const counts = await Promise.all(
      SHARDS.map((shard) => this.#postgres.query('SELECT FROM entry WHERE tx = $1', [tx], shard)),
    )
    return SHARDS.filter((shard) => counts[shard]?.length === 1)
  }

  recover(graceMs = 0): Promise<RecoveryReport> {
    return recoverPrepared({ identity: this.identity, withServer: this.withServer, graceMs })
  }

  /** Recovers until nothing is left; gives the reports. Fails after 20 s. */
  async recoverAll(): Promise<RecoveryReport[]> {
    const reports: RecoveryReport[] = []
    const deadline = Date.now() + 20_000
    for (;;) {
      reports.push(await this.recover())
      if ((await this.leftovers().catch(() => ['?'])).length === 0) return reports
      if (Date.now() > deadline) throw new Error(`not clean: ${JSON.stringify(reports.slice(-2))}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  /** Prepared transactions and decision rows, on any shard. */
  async leftovers(): Promise<string[]> {
    const lists = await Promise.all(
      SHARDS.map((shard) =>
        this.#postgres.query(
          `SELECT gid AS what FROM pg_prepared_xacts WHERE database = current_database()
           UNION ALL SELECT outcome || ' ' || encode(id, 'hex') FROM pgshard.decision`,
          [],
          shard,
        ),
      ),
    )
    return lists.flatMap((rows, shard) => rows.map((row) => `${shard}: ${row['what']}`))
  }

  /** Waits until every server takes connections. */
  async allUp(): Promise<void> {
    const deadline = Date.now() + 20_000
    for (const shard of SHARDS) {
      for (;;) {
        try {
          await this.withServer(shard, (server) => server.query('SELECT 1'))
          break
        } catch (error) {
          if (Date.now() > deadline) throw error
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      }
    }
  }
}

/** Runs `act` once, when the commit comes to `step`. */
export function at(step: TwoPhaseStep, act: () => Promise<void> | void): Partial<TwoPhaseCommit> {
  return { onStep: (one) => (one === step ? act() : undefined) }
}

/** A step at which the process dies: the connections end, and the commit goes no further. */
export function diesAt(
  step: TwoPhaseStep,
  parts: readonly { readonly server: ServerConnection }[],
  died: () => void,
): Partial<TwoPhaseCommit> {
  return at(step, () => {
    for (const { server } of parts) server.destroy()
    died()
    return new Promise<void>(() => undefined)
  })
}

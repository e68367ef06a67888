/**
 * kill −9 of serve while clients move money between shards: once at every step of two-phase commit, and at random moments
 * under load. After a restart no prepared transaction is left within ten seconds, and no money is made or lost.
 */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { TWO_PHASE_STEPS, type TwoPhaseStep } from '../../src/executor/two-phase.js'
import { freePort } from '../support/free-port.js'
import { makeRandom } from '../support/random.js'
import { type CliProgram, runCli, startCli } from '../support/run-cli.js'
import { type ShardAddress, writeServeConfig } from '../support/serve.js'
import { bySize } from '../support/test-size.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'

const SHARDS = 3
const SWEEP_MS = 10_000
const ACCOUNTS = 60
const CLIENTS = bySize(12, 50)
const KILLS = bySize(1, 10)

/** What is on the shards after a death at each step. A step without an entry is a step without a test. */
const ENDS: Record<TwoPhaseStep, 'none' | 'all' | 'either'> = {
  begun: 'none',
  readied: 'none',
  preparing: 'none',
  prepared: 'none',
  deciding: 'either',
  decided: 'all',
  committing: 'all',
  committed: 'all',
  forgotten: 'all',
}

/** What a client may hear when serve dies, or of other clients that move money between the same accounts. */
const isOfKill = ({ code, message }: pg.DatabaseError): boolean =>
  code === undefined
    ? /terminated|ended|closed/i.test(message)
    : /^(08|57P|40001|40P01|ECONN|EPIPE)/.test(code)

interface Variant {
  readonly name: string
  /** One PostgreSQL with a database of another name a shard; else a server each, with databases of one name. */
  readonly isOneServer: boolean
  /** Each transfer runs under a role that may not finish a prepared transaction of its own. */
  readonly setsRole: boolean
}

const variants: readonly Variant[] = [
  { name: 'another database name a shard, SET LOCAL ROLE', isOneServer: true, setsRole: true },
  { name: 'a server a shard', isOneServer: false, setsRole: false },
]

describe.each(bySize(variants.slice(0, 1), variants))('$name', (variant) => {
  const postgres = usePostgres(variant.isOneServer ? { version: 15 } : { count: SHARDS })
  const shards: ShardAddress[] = []
  /** Accounts of each shard: one for each step, the others for the load. */
  const accounts: number[][] = []
  let files: { configPath: string; usersPath: string }
  let port: number
  let role: string

  const onShard = async (shard: number, sql: string): Promise<Record<string, unknown>[]> => {
    const client = await postgres().connect(
      variant.isOneServer ? 0 : shard,
      shards[shard]!.database,
    )
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  }
  const everywhere = async (sql: string) =>
    Promise.all(shards.map((_, shard) => onShard(shard, sql)))

  beforeAll(async () => {
    role = `mover_${postgres().database}`
    for (let shard = 0; shard < SHARDS; shard++) {
      const { host, port: at } = postgres().servers[variant.isOneServer ? 0 : shard]!
      const database = variant.isOneServer ? await postgres().createDatabase() : postgres().database
      shards.push({ host, port: at, database })
      if (shard === 0 || !variant.isOneServer) await onShard(shard, `create role ${role}`)
      await onShard(
        shard,
        `create table account (k bigint primary key, amount int not null);
         grant all on account to ${role};
         create table by_hash (k bigint) partition by hash (k);
         create table by_hash_0 partition of by_hash for values with (modulus ${SHARDS}, remainder 0);
         insert into account select k, 100 from generate_series(1, 3000) k
         where satisfies_hash_partition('by_hash'::regclass, ${SHARDS}, ${shard}, k::bigint)
         order by k limit ${ACCOUNTS}`,
      )
      const rows = await onShard(shard, 'select k::int from account order by k')
      accounts.push(rows.map(({ k }) => Number(k)))
    }
    files = writeServeConfig({
      shards,
      tables: '[[sharded_tables]]\ndatabase = "app"\nname = "account"\ncolumn = "k"',
      general: ['default_pool_size = 20'],
    })
    const setup = await runCli(['setup', '-c', files.configPath, '-u', files.usersPath])
    expect(setup.code, setup.stderr).toBe(0)
    port = await freePort()
  }, 60_000)

  /** Dies at `step` of its first commit over shards; without one it lives. */
  const start = async (step?: TwoPhaseStep): Promise<CliProgram> => {
    const args = [step ?? '-', files.configPath, files.usersPath, String(port)]
    const program = startCli(args, { program: 'test/support/dying-serve.mjs' })
    await program.waitForOutput(/listening on/)
    return program
  }

  const connect = async () => {
    const client = new pg.Client(`postgres://postgres@127.0.0.1:${port}/app`)
    client.on('error', () => undefined)
    await client.connect()
    return client
  }

  /** Moves one unit from the nth account of the first shard to that of each other. */
  const transfer = async (client: pg.Client, from: number, nth: number): Promise<string> => {
    await client.query('begin')
    if (variant.setsRole) await client.query(`set local role ${role}`)
    for (let i = 0; i < SHARDS; i++) {
      const shard = (from + i) % SHARDS
      const amount = i === 0 ? 1 - SHARDS : 1
      const move = 'update account set amount = amount + $1 where k = $2'
      await client.query(move, [amount, accounts[shard]![nth]])
    }
    return (await client.query('commit')).command
  }

  const prepared = async (): Promise<number> => {
    const sql =
      'select count(*)::int as n from pg_prepared_xacts where database = current_database()'
    return (await everywhere(sql)).reduce((sum, rows) => sum + Number(rows[0]!['n']), 0)
  }
  const amountsOf = async (nth: number): Promise<number[]> =>
    Promise.all(
      accounts.map(async (keys, shard) => {
        const [row] = await onShard(shard, `select amount from account where k = ${keys[nth]}`)
        return Number(row!['amount'])
      }),
    )
  const total = async (): Promise<number> =>
    (await everywhere('select sum(amount)::int as s from account')).reduce(
      (sum, rows) => sum + Number(rows[0]!['s']),
      0,
    )
  const noneLeft = () =>
    waitFor(async () => (await prepared()) === 0, {
      deadlineMs: SWEEP_MS,
      what: 'no prepared transaction left',
    })

  it('D143, D146, D147: dies at every step, and all shards end the same', async () => {
    await everywhere('update account set amount = 100')
    const moved = [100 + 1 - SHARDS, 101, 101]
    const still = [100, 100, 100]
    for (const [nth, step] of TWO_PHASE_STEPS.entries()) {
      const program = await start(step)
      const client = await connect()
      // at the last steps the client may have heard its COMMIT
      await transfer(client, 0, nth).catch(() => undefined)
      expect((await program.ended).signal, step).toBe('SIGKILL')
      expect(program.stderr).toContain(`died at ${step}`)
      await client.end().catch(() => undefined)
      const inDoubt = await prepared()
      const least = { preparing: 1, prepared: SHARDS - 1, decided: SHARDS - 1 } as const
      expect(inDoubt, step).toBeGreaterThanOrEqual(least[step as keyof typeof least] ?? 0)
      // in the quick size all of them are ended together
      if (bySize(nth < TWO_PHASE_STEPS.length - 1, false)) continue
      const next = await start()
      await noneLeft()
      await next.stop()
    }
    for (const [nth, step] of TWO_PHASE_STEPS.entries()) {
      const wanted = { none: [still], all: [moved], either: [still, moved] }[ENDS[step]]
      expect(wanted, step).toContainEqual(await amountsOf(nth))
    }
    expect(await total()).toBe(SHARDS * ACCOUNTS * 100)
  }, 240_000)

  it('D81, D145, D147: dies again and again under clients that move money', async () => {
    const random = makeRandom(20_261_130)
    const nths = ACCOUNTS - TWO_PHASE_STEPS.length
    let program = await start()
    let runs = true
    let commits = 0
    const unexpected: string[] = []
    const moveOn = async (client: pg.Client) => {
      while (runs) {
        const nth = TWO_PHASE_STEPS.length + Math.floor(random() * nths)
        const command = await transfer(client, Math.floor(random() * SHARDS), nth)
        if (command === 'COMMIT') commits++
      }
    }
    const work = async () => {
      while (runs) {
        let client: pg.Client | undefined
        await connect()
          .then((connected) => {
            client = connected
            return moveOn(connected)
          })
          .catch((error: pg.DatabaseError) => {
            if (!isOfKill(error)) unexpected.push(`${error.code} ${error.message}`)
            return new Promise((resolve) => setTimeout(resolve, 20))
          })
        await client?.end().catch(() => undefined)
      }
    }
    const workers = Array.from({ length: CLIENTS }, work)
    for (let kill = 0; kill < KILLS; kill++) {
      const before = commits
      await waitFor(() => commits >= before + CLIENTS, {
        deadlineMs: 60_000,
        what: 'commits between two kills',
      })
      process.kill(program.pid, 'SIGKILL')
      await program.ended
      program = await start()
    }
    runs = false
    await Promise.all(workers)
    await noneLeft()
    expect(await total()).toBe(SHARDS * ACCOUNTS * 100)
    expect(unexpected).toEqual([])
    await program.stop()
  }, 300_000)
})

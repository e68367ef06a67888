/** A client of the isolation test: it knows what is its own, and notes whatever it sees of others. */
import pg from 'pg'
import { sendCancel } from '../../support/send-cancel.js'
import type { Served } from '../../support/serve.js'

const HOLD_MS = 900

/** A stream of numbers that a seed decides. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error)

export interface Counts {
  transactions: number
  timeouts: number
  cancels: number
  vanished: number
}

/** One client that knows what is its own. */
export class Actor {
  readonly tag: string
  readonly committed: number[] = []
  readonly counts: Counts = { transactions: 0, timeouts: 0, cancels: 0, vanished: 0 }
  readonly faults: string[] = []
  readonly #served: Served
  readonly #random: (below: number) => number
  #client!: pg.Client
  /** `work_mem` as this client has set it, in kB. */
  #memory = 0

  constructor(number: number, served: Served) {
    this.tag = `client-${number}`
    this.#served = served
    this.#random = randomOf(number + 1)
  }

  async run(transactions: number): Promise<void> {
    try {
      await this.#connect()
      for (let turn = 0; turn < transactions; turn++) await this.#turn(turn)
    } catch (error) {
      this.faults.push(`${this.tag}: ${codeOf(error)} ${(error as Error).message}`)
    } finally {
      await this.#client.end().catch(() => undefined)
    }
  }

  async #connect(): Promise<void> {
    this.#client = new pg.Client({ connectionString: this.#served.url })
    this.#client.on('error', () => undefined)
    await this.#client.connect()
    await this.#patiently(() => this.#client.query(`set test.tag to '${this.tag}'`))
    await this.#setMemory()
  }

  #setMemory(): Promise<unknown> {
    this.#memory = 1024 + this.#random(5000)
    return this.#patiently(() => this.#client.query(`set work_mem to ${this.#memory}`))
  }

  /** Again when no server came free in time. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (codeOf(error) !== '53300') throw error
        this.counts.timeouts++
      }
    }
  }

  async #turn(turn: number): Promise<void> {
    const dice = this.#random(200)
    if (dice < 4) return this.#cancelled()
    if (dice < 8) return this.#racingCancel()
    if (dice < 11) return this.#vanish()
    if (dice < 13) await this.#patiently(() => this.#ask(`select pg_sleep(${HOLD_MS / 1000})`))
    if (dice < 25) await this.#setMemory()
    while (!(await this.#transaction(turn)));
  }

  /** In one of the three ways. */
  #ask(sql: string): Promise<pg.QueryResult> {
    switch (this.#random(3)) {
      case 0:
        return this.#client.query(sql)
      case 1:
        return this.#client.query({
          text: sql,
          values: [],
          queryMode: 'extended',
        } as pg.QueryConfig)
      default:
        return this.#client.query({ name: `s${sql}`.slice(0, 60), text: sql })
    }
  }

  /** False when no server came free in time, and nothing was done. */
  async #transaction(turn: number): Promise<boolean> {
    await this.#client.query('begin')
    try {
      const first = await this.#look()
      await this.#client.query({
        ...(this.#random(2) === 0 ? { name: 'insert' } : {}),
        text: 'insert into mark (tag, turn) values ($1, $2)',
        values: [this.tag, turn],
      })
      const local = this.#random(4) === 0
      if (local) await this.#client.query(`set local statement_timeout to ${60_000 + turn}`)
      const rows = await this.#ask(`select '${this.tag}' as tag, n from generate_series(1, 20) n`)
      if (rows.rowCount !== 20 || rows.rows.some(({ tag }) => tag !== this.tag))
        this.faults.push(`${this.tag}: foreign rows ${JSON.stringify(rows.rows)}`)
      const last = await this.#look(local ? 60_000 + turn : 0)
      if (first !== last) this.faults.push(`${this.tag}: process ${first}, then ${last}`)
      const commits = this.#random(5) > 0
      await this.#ask(commits ? 'commit' : 'rollback')
      if (commits) this.committed.push(turn)
      this.counts.transactions++
      return true
    } catch (error) {
      if (codeOf(error) !== '53300') throw error
      this.counts.timeouts++
      await this.#client.query('rollback')
      return false
    }
  }

  /** What the session should see of itself; gives the server's process. */
  async #look(timeoutMs = 0): Promise<number> {
    const { rows } = await this.#ask(
      `select pg_backend_pid() as pid, current_setting('test.tag', true) as tag, current_setting('work_mem') as memory,
       (select setting from pg_settings where name = 'statement_timeout') as timeout,
       (select setting from pg_settings where name = 'work_mem') as kb`,
    )
    const { pid, ...seen } = rows[0]
    const memory = this.#memory % 1024 === 0 ? `${this.#memory / 1024}MB` : `${this.#memory}kB`
    const own = { tag: this.tag, memory, timeout: String(timeoutMs), kb: String(this.#memory) }
    for (const [name, value] of Object.entries(own)) {
      if (seen[name] !== value)
        this.faults.push(`${this.tag}: ${name} is ${seen[name]}, not ${value}`)
    }
    return pid
  }

  /** A statement that only its own cancel can end. */
  async #cancelled(): Promise<void> {
    const sleep = this.#client.query('select pg_sleep(30)').then(
      () => 'slept',
      (error: unknown) => codeOf(error),
    )
    let end: string | undefined
    // a cancel that arrives before the server has begun is lost, as it is without a proxy
    while (end === undefined) {
      await new Promise((resolve) => setTimeout(resolve, this.#random(20)))
      await sendCancel(this.#client, this.#served.port)
      const pause = new Promise<undefined>((resolve) => {
        setTimeout(() => resolve(undefined), 300)
      })
      end = await Promise.race([sleep, pause])
    }
    if (end === '57014') this.counts.cancels++
    else if (end === '53300') this.counts.timeouts++
    else this.faults.push(`${this.tag}: a cancelled statement ended with ${end}`)
  }

  /** A cancel that may come too late, when the server is somebody else's. */
  async #racingCancel(): Promise<void> {
    const quick = this.#ask('select 1').then(
      () => 'done',
      (error: unknown) => codeOf(error),
    )
    await sendCancel(this.#client, this.#served.port)
    const end = await quick
    if (!['done', '57014', '53300'].includes(end))
      this.faults.push(`${this.tag}: a quick statement ended with ${end}`)
    this.counts.cancels++
  }

  /** Goes in the middle of a large answer, inside or outside a transaction. */
  async #vanish(): Promise<void> {
    const client = this.#client
    const { stream } = (
      client as unknown as { connection: { stream: NodeJS.EventEmitter & { destroy(): void } } }
    ).connection
    if (this.#random(2) === 0) {
      await client.query('begin')
      await this.#patiently(() =>
        client.query('insert into mark values ($1, -1)', [this.tag]).catch(async (error) => {
          await client.query('rollback')
          await client.query('begin')
          throw error
        }),
      )
    }
    const read = client.query("select repeat('x', 1000) from generate_series(1, 20000)")
    await Promise.race([
      new Promise((resolve) => stream.once('data', resolve)),
      read.catch(() => undefined),
    ])
    stream.destroy()
    await read.catch(() => undefined)
    this.counts.vanished++
    await this.#connect()
  }
}

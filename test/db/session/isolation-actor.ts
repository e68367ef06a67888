/**
 * A client of the isolation canary. Whatever it asks for bears its tag; every message that it hears is searched for the
 * tag of another. What it does comes from a deck that is shuffled by a seed, so that each kind of fault happens as often
 * as the deck says, on any machine.
 */
import { randomOf } from '../../support/random-of.js'
import {
  fieldsOf,
  type Message,
  rowsOf,
  say,
  textsOf,
  WireClient,
  WireError,
} from '../../support/wire-client.js'
import { type Deed, requestOf, shuffledDeck } from './isolation-deck.js'
import { readLetters } from './isolation-reads.js'

const TAG = /client-\d\d/g
const LARGE_ANSWER = "select repeat('x', 1000) from generate_series(1, 20000)"

/** No server came free in time: nothing of the request ran. */
class Starved extends Error {}

export interface ActorPlace {
  readonly port: number
  readonly database: string
}

export class Actor {
  readonly tag: string
  readonly faults: string[] = []
  /** Turns whose rows the client was told to be committed. */
  readonly committed: number[] = []
  readonly played = new Map<Deed, number>()
  /** Requests that waited in vain for a server. */
  starved = 0
  readonly #place: ActorPlace
  readonly #random: (below: number) => number
  readonly #spoken = (sql: string) => requestOf(sql, this.#random)
  #client: WireClient | undefined
  /** A second connection, with the settings that all have. */
  #plain: WireClient | undefined
  #turn = 0
  /** `work_mem` as this client has set it, in kB. */
  #memory = 0

  constructor(number: number, place: ActorPlace) {
    this.tag = `client-${String(number).padStart(2, '0')}`
    this.#place = place
    this.#random = randomOf(number * 7919 + 17)
  }

  /** Plays whole decks until `isOver`, at least one. */
  run(isOver: () => boolean): Promise<void> {
    return this.#asClient(async () => {
      do {
        for (const deed of shuffledDeck(this.#random)) {
          if (this.faults.length > 0) return
          await this.#play(deed)
        }
      } while (!isOver())
    })
  }

  /** Plays one card. */
  playOnly(deed: Deed): Promise<void> {
    return this.#asClient(() => this.#play(deed))
  }

  async #asClient(work: () => Promise<void>): Promise<void> {
    try {
      await this.#connect()
      await work()
    } catch (error) {
      this.faults.push(`${this.tag}: ${(error as Error).stack}`)
    } finally {
      await this.#client?.end()
      await this.#plain?.end()
    }
  }

  async #play(deed: Deed): Promise<void> {
    this.#turn++
    await this.#patiently(() => this[`_${deed}`]())
    this.played.set(deed, (this.played.get(deed) ?? 0) + 1)
  }

  /** Again from its start when no server came free. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    for (let again = false; ; again = true) {
      try {
        if (again) await this.#ask(say.query('rollback'))
        return await work()
      } catch (error) {
        if (!(error instanceof Starved)) throw error
        this.starved++
      }
    }
  }

  async #connect(): Promise<void> {
    this.#client = await this.#logIn()
    await this.#patiently(() => this.#rows(`set test.tag to '${this.tag}'`))
    await this.#patiently(() => this._setting())
  }

  /** A login with settings that no other had asks a server for what to tell: it can starve, too. */
  async #logIn(): Promise<WireClient> {
    for (;;) {
      try {
        const parameters = { application_name: this.tag }
        return await WireClient.open({ ...this.#place, parameters })
      } catch (error) {
        if (!(error instanceof WireError) || error.fields['C'] !== '53300') throw error
        this.starved++
      }
    }
  }

  get #wire(): WireClient {
    return this.#client as WireClient
  }

  #expect(what: string, found: unknown, wanted: unknown): void {
    const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)]
    if (one !== other)
      this.faults.push(`${this.tag}, turn ${this.#turn}: ${what} ${one}, not ${other}`)
  }

  /** Nothing of another may stand in what comes. */
  #inspect(message: Message): void {
    for (const [tag] of message.body.toString('latin1').matchAll(TAG))
      if (tag !== this.tag)
        this.faults.push(
          `${this.tag}, turn ${this.#turn}: ${message.tag} of ${tag}: ${message.body.toString('latin1').slice(0, 200)}`,
        )
  }

  /** One request, or several: the messages of each. @throws Starved */
  async #ask(bytes: Buffer | readonly Buffer[], syncs = 1): Promise<Message[][]> {
    const answers = await this.#wire.ask(bytes, syncs)
    for (const message of answers.flat()) {
      this.#inspect(message)
      if (message.tag === 'E' && fieldsOf(message)['C'] === '53300') throw new Starved()
    }
    return answers
  }

  /** Rows of one statement, in one of the three ways. @throws WireError with the error's fields */
  async #rows(sql: string): Promise<(string | null)[][]> {
    const [answer = []] = await this.#ask(this.#spoken(sql))
    return rowsOf(answer)
  }

  /** SQLSTATE of a statement that should fail; `none` when it does not. */
  async #stateOf(sql: string): Promise<string> {
    try {
      await this.#rows(sql)
      return 'none'
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      return error.fields['C'] ?? 'gone'
    }
  }

  /** What the session should see of itself; gives the server's process. */
  async #look(timeoutMs = 0): Promise<string | null | undefined> {
    const [row = []] = await this.#rows(
      `select pg_backend_pid(), current_setting('test.tag', true),
       (select setting from pg_settings where name = 'work_mem'),
       (select setting from pg_settings where name = 'statement_timeout')`,
    )
    const [pid, ...seen] = row
    this.#expect('settings', seen, [this.tag, String(this.#memory), String(timeoutMs)])
    return pid
  }

  async _sharedReads(): Promise<void> {
    this.#plain ??= await this.#logIn()
    const isDone = await readLetters(this.#plain, {
      tag: this.tag,
      port: this.#place.port,
      random: this.#random,
      inspect: (message) => this.#inspect(message),
      expect: (what, found, wanted) => this.#expect(what, found, wanted),
    })
    if (!isDone) throw new Starved()
  }

  async _transaction(): Promise<void> {
    await this.#rows('begin')
    const first = await this.#look()
    const turn = this.#turn
    await this.#rows(`insert into mark (tag, turn) values ('${this.tag}', ${turn})`)
    const local = this.#random(4) === 0
    if (local) await this.#rows(`set local statement_timeout to ${60_000 + turn}`)
    const rows = await this.#rows(`select '${this.tag}', n from generate_series(1, 20) n`)
    this.#expect(
      'rows',
      rows,
      Array.from({ length: 20 }, (_, n) => [this.tag, String(n + 1)]),
    )
    const last = await this.#look(local ? 60_000 + turn : 0)
    this.#expect('process in a transaction', last, first)
    const commits = this.#random(5) > 0
    await this.#rows(commits ? 'commit' : 'rollback')
    if (commits) this.committed.push(turn)
  }

  /** All clients use the same names, some for their own texts, one for a text of all. */
  async _prepared(): Promise<void> {
    const own = `select '${this.tag}', ${this.#turn}, $1::text`
    const parameter = `${this.tag} ${this.#turn}`
    for (const [name, sql] of [
      ['own', own],
      ['shared', 'select $1::text'],
    ] as const) {
      const [prepared = []] = await this.#ask([say.close(name), say.parse(name, sql), say.sync()])
      rowsOf(prepared)
      for (let i = 0; i < 3; i++) {
        const [answer = []] = await this.#ask([
          say.bind(name, [parameter]),
          say.execute(),
          say.sync(),
        ])
        this.#expect(
          `rows of the statement ${name}`,
          rowsOf(answer),
          name === 'own' ? [[this.tag, String(this.#turn), parameter]] : [[parameter]],
        )
      }
    }
  }

  /** Several requests in one write, some of which fail: each has its own answer, in order. */
  async _pipeline(): Promise<void> {
    const texts = [
      `select '${this.tag}', 1`,
      `select '${this.tag} is no number'::int`,
      `select '${this.tag}', 3`,
      `select '${this.tag}', 1 / (${this.#turn} - ${this.#turn})`,
      `select '${this.tag}', 5`,
    ]
    const answers = await this.#ask(
      texts.flatMap((sql) => [say.parse('', sql), say.bind(''), say.execute(), say.sync()]),
      texts.length,
    )
    const seen = answers.map((answer) => {
      const failure = answer.find(({ tag }) => tag === 'E')
      if (failure) return [fieldsOf(failure)['C'], fieldsOf(failure)['M']]
      return answer.filter(({ tag }) => tag === 'D').map(textsOf)[0]
    })
    this.#expect('answers of a pipeline', seen, [
      [this.tag, '1'],
      ['22P02', `invalid input syntax for type integer: "${this.tag} is no number"`],
      [this.tag, '3'],
      ['22012', 'division by zero'],
      [this.tag, '5'],
    ])
  }

  /** What stands before one Sync is undone as a whole when one of it fails. */
  async _implicitTransaction(): Promise<void> {
    const statements = [
      `insert into mark (tag, turn) values ('${this.tag}', -1)`,
      `select '${this.tag} is no number'::int`,
      `insert into mark (tag, turn) values ('${this.tag}', -2)`,
    ]
    const [answer = []] = await this.#ask([
      ...statements.flatMap((sql) => [say.parse('', sql), say.bind(''), say.execute()]),
      say.sync(),
    ])
    const tags = answer.map(({ tag }) => tag).join('')
    this.#expect('messages of a request that fails in its middle', tags, '12CEZ')
  }

  async _setting(): Promise<void> {
    const memory = 1024 + this.#random(5000)
    await this.#rows(`set work_mem to ${memory}`)
    this.#memory = memory
    await this.#rows(`set application_name to '${this.tag} in turn ${this.#turn}'`)
    await this.#look()
  }

  async _notice(): Promise<void> {
    const text = `${this.tag} notes ${this.#turn}`
    for (const sql of [`do $$ begin raise notice '${text}'; end $$`, `select note('${text}')`]) {
      const [answer = []] = await this.#ask(this.#spoken(sql))
      const notices = answer.filter(({ tag }) => tag === 'N').map((one) => fieldsOf(one)['M'])
      this.#expect('notices', notices, [text])
    }
  }

  async _raise(): Promise<void> {
    const text = `${this.tag} fails ${this.#turn}`
    const [answer = []] = await this.#ask(
      this.#spoken(
        `do $$ begin raise exception '${text}' using errcode = 'PG${this.tag.slice(-2)}0'; end $$`,
      ),
    )
    const errors = answer.filter(({ tag }) => tag === 'E').map(fieldsOf)
    this.#expect(
      'errors',
      errors.map((fields) => [fields['M'], fields['C']]),
      [[text, `PG${this.tag.slice(-2)}0`]],
    )
  }

  async _copyOut(): Promise<void> {
    const [answer = []] = await this.#ask(
      say.query(`copy (select '${this.tag}', n from generate_series(1, 50) n) to stdout`),
    )
    const lines = answer.filter(({ tag }) => tag === 'd').map(({ body }) => body.toString().trim())
    this.#expect(
      'COPY',
      lines,
      Array.from({ length: 50 }, (_, n) => `${this.tag}\t${n + 1}`),
    )
  }

  /** Listens, hears itself once, and nobody else. */
  async _notify(): Promise<void> {
    const payload = `${this.tag} in turn ${this.#turn}`
    await this.#rows(`listen "${this.tag}"`)
    const [answer = []] = await this.#ask(this.#spoken(`notify "${this.tag}", '${payload}'`))
    let heard = answer.filter(({ tag }) => tag === 'A')
    if (heard.length === 0) heard = [await this.#wire.next()]
    for (const message of heard) this.#inspect(message)
    this.#expect(
      'notifications',
      heard.map(({ tag, body }) => [tag, body.subarray(4).toString()]),
      [['A', `${this.tag}\0${payload}\0`]],
    )
    await this.#rows('unlisten *')
  }

  async _temporary(): Promise<void> {
    await this.#rows('create temp table mine (tag text)')
    try {
      await this.#rows(`insert into mine values ('${this.tag}')`)
      this.#expect('rows of a temporary table', await this.#rows('select tag from mine'), [
        [this.tag],
      ])
    } finally {
      await this.#rows('discard temp')
    }
  }

  /** A statement that only its own cancel can end. */
  async _ownCancel(): Promise<void> {
    let end: string | undefined
    const asleep = this.#stateOf('select pg_sleep(30)').then((state) => {
      end = state
    })
    const starved = asleep.catch(() => {
      end = 'starved'
    })
    // a cancel that arrives before the server has begun is lost, as it is without a proxy
    while (end === undefined) {
      await new Promise((resolve) => setTimeout(resolve, this.#random(20)))
      await this.#wire.cancel(this.#place.port)
      await Promise.race([starved, new Promise((resolve) => setTimeout(resolve, 300))])
    }
    await asleep
    this.#expect('a cancelled statement', end, '57014')
  }

  /** A cancel that may come too late, when the server is somebody else's. */
  async _racingCancel(): Promise<void> {
    const quick = this.#stateOf(`select '${this.tag}'`)
    const starved = quick.catch(() => undefined)
    await this.#wire.cancel(this.#place.port)
    await starved
    this.#expect('the end of a quick statement', ['none', '57014'].includes(await quick), true)
  }

  async _statementTimeout(): Promise<void> {
    const inside = this.#turn % 2 === 0
    if (inside) await this.#rows('begin')
    await this.#rows(`set ${inside ? 'local ' : ''}statement_timeout to 30`)
    const [answer = []] = await this.#ask(this.#spoken('select pg_sleep(10)'))
    const failure = answer.find(({ tag }) => tag === 'E')
    this.#expect(
      'a statement that takes too long',
      failure && fieldsOf(failure)['M'],
      'canceling statement due to statement timeout',
    )
    await this.#rows(inside ? 'rollback' : 'reset statement_timeout')
    await this.#look()
  }

  /** Goes in the middle of a large answer, inside or outside a transaction. */
  async _vanish(): Promise<void> {
    if (this.#random(2) === 0) {
      await this.#rows('begin')
      await this.#rows(`insert into mark (tag, turn) values ('${this.tag}', -3)`)
    }
    this.#wire.send(say.query(LARGE_ANSWER))
    await this.#wire.next()
    if (this.#random(2) === 0) this.#wire.socket.destroy()
    else this.#wire.socket.resetAndDestroy()
    await this.#connect()
  }
}

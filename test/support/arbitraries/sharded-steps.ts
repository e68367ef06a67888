/** Conversations over sharded tables as frames: strings of statements, pipelines with faults, portals in portions, Flush, COPY. */
import type { Chooser } from './chooser.js'
import type { Step } from './session-steps.js'
import { ShardedStatements } from './sharded-statements.js'

type ClientMessage = Step[number]

/** What the client sends, in order. */
export function shardedConversation(choose: Chooser, keys: readonly number[]): Step[] {
  const make = new ShardedSteps(choose, keys)
  return choose.some(4, 16, () => make.step())
}

class ShardedSteps {
  readonly #choose: Chooser
  readonly #statements: ShardedStatements

  constructor(choose: Chooser, keys: readonly number[]) {
    this.#choose = choose
    this.#statements = new ShardedStatements(choose, keys)
  }

  step(): Step {
    const kind = this.#choose.below(100)
    if (kind < 52) return [this.#query()]
    if (kind < 60) {
      const sql = this.#choose.some(2, 4, () => this.#statements.any()).join('; ')
      return [{ kind: 'query', sql }]
    }
    if (kind < 63) return this.#copyIn()
    if (kind < 92) return this.#batch()
    if (kind < 96) return [...this.#batch(), ...this.#batch()]
    return this.#choose.some(2, 4, () => this.#query())
  }

  #query(): ClientMessage {
    return { kind: 'query', sql: this.#statements.any() }
  }

  #copyIn(): Step {
    const choose = this.#choose
    const k = this.#statements.key()
    const other = this.#statements.key()
    const [table, rows] = choose.pick([
      ['item', `${k}\t60\tc\t1\n${other}\t61\t\\N\t2\n`],
      ['item', `${k}\t60\tc\t1\n${other}\t0\tdouble\t2\n`],
      ['item', `${k}\t62\tc\t1\n`],
      ['item', 'x\ty\n'],
      ['loose', '\\N\t1\tn\n'],
      ['noisy', `${k}\t60\tc\n${other}\t61\tc\n`],
      ['country', 'es\tSpain\n'],
      ['item', ''],
    ] as const)
    const data: ClientMessage = {
      kind: 'copy',
      rows,
      ends: rows.startsWith('x') || choose.chance(0.85) ? 'done' : 'fail',
    }
    const sql = `copy ${table} from stdin`
    if (choose.chance(0.5)) return [{ kind: 'query', sql }, data]
    return [
      { kind: 'parse', name: '', sql, types: [] },
      { kind: 'bind', portal: '', statement: '', values: [] },
      { kind: 'execute', portal: '', maxRows: 0 },
      data,
      { kind: 'sync' },
    ]
  }

  #batch(): ClientMessage[] {
    const choose = this.#choose
    const messages: ClientMessage[] = []
    const pieces = choose.pick([1, 1, 1, 2, 2, 3, 4])
    for (let i = 0; i < pieces; i++) {
      messages.push(...(choose.chance(0.9) ? this.#piece() : this.#loose()))
      if (choose.chance(0.08)) messages.push({ kind: 'flush' })
    }
    messages.push({ kind: 'sync' })
    return messages
  }

  /** Parse to Execute of one statement. */
  #piece(): ClientMessage[] {
    const choose = this.#choose
    const name = choose.pick(['', '', '', 's1', 's2'])
    const messages: ClientMessage[] = []
    let values: (string | null)[] | undefined
    if (name === '' || choose.chance(0.5)) {
      const parsed = this.#parse(name)
      if (name !== '' && choose.chance(0.7)) messages.push({ kind: 'close', what: 'S', name })
      messages.push(parsed.message)
      values = parsed.values
    }
    if (choose.chance(0.2)) messages.push({ kind: 'describe', what: 'S', name })
    if (choose.chance(0.08)) return messages
    const k = String(this.#statements.key())
    const bound = values ?? choose.pick([[], [], [k], [k, '0']])
    const isOrdered = messages.every((one) => !('sql' in one) || /order by/.test(one.sql))
    return [...messages, ...this.#run(name, bound, isOrdered)]
  }

  #parse(name: string): { message: ClientMessage; values: (string | null)[] } {
    const choose = this.#choose
    if (choose.chance(0.5)) {
      const sql = this.#statements.any()
      return { message: { kind: 'parse', name, sql, types: [] }, values: [] }
    }
    const k = choose.chance(0.93) ? String(this.#statements.key()) : choose.pick([null, 'x', ''])
    const other = String(this.#statements.key())
    const [sql, values, types] = choose.pick<
      [string, (string | null)[], number[]] | [string, (string | null)[]]
    >([
      ['select id, v from item where k = $1 order by id', [k], [20]],
      ['select id, v from item where k = $1 order by id', [k], [23]],
      ['select id, v from item where k = $1 order by id', [k]],
      ['select id, v from item where k = $1::int order by id', [k]],
      ['select id, v from item where k = $1 + 0 order by id', [k]],
      ['select id, v from item where k = $1::text::bigint order by id', [k]],
      ['select id, $2::text as t from item where k = $1 order by id', [k, 'text']],
      ['select k, id from item where id >= $1 order by k, id', ['1']],
      ['select k, id from item order by k, id limit $1', ['3']],
      ['select k, id from item order by k, id limit $1 offset $2', ['3', '2']],
      ['select count(*) from item where v like $1', ['item%']],
      ['select id, count(*) from item where n > $1 group by id order by id', ['1']],
      [
        'select i.k, n.k as o from item i join note n on n.id = i.id and i.k <> n.k where i.n > $1 order by 1, 2',
        ['1'],
      ],
      ['select k, id from item where k in ($1, $2) order by k, id', [k, other]],
      ['select k, id from item where k = any ($1) order by k, id', [`{${k},${other}}`], [1016]],
      ['select k, id from item where k = any ($1) order by k, id', [`{${k},${other}}`]],
      ['select k, id from item where k between $1 and $2 order by k, id', [k, other]],
      ['insert into item values ($1, $2, $3, 1)', [k, String(choose.below(12)), 'p']],
      ['insert into item values ($1, $2, $3, 1)', [k, null, 'p']],
      [
        'insert into item values ($1, $2, $3, 1) returning k, id, v',
        [k, String(choose.below(40)), 'p'],
        [20, 23, 25],
      ],
      ['insert into item values ($1, 70, $2, 1), ($3, 71, $2, 2)', [k, 'two', other]],
      ['insert into item values ($1, 70, $2, 1), ($3, 0, $2, 2)', [k, 'two', other]],
      ['update item set v = $2 where k = $1', [k, 'p']],
      ['update item set v = $1 where id = 0', ['p']],
      ['update item set n = n / $1 where id = 0', ['0']],
      ['update item set k = $2 where k = $1 and id = 0', [k, other]],
      ['delete from item where k = $1 and id = $2', [k, '0']],
      ['delete from note where id = $1', ['7']],
      ['select $1::int / $2::int', ['1', '0']],
      ['select 1 / ($1 - id) from item order by k, id', ['1']],
      ['select $1', ['x']],
      ["select set_config('work_mem', $1, false)", ['8MB']],
    ])
    return { message: { kind: 'parse', name, sql, types: types ?? [] }, values }
  }

  #run(statement: string, values: readonly (string | null)[], isOrdered: boolean): ClientMessage[] {
    const choose = this.#choose
    const portal = choose.pick(['', '', '', 'p1', 'p2', 'c1'])
    const messages: ClientMessage[] = [{ kind: 'bind', portal, statement, values }]
    if (choose.chance(0.5)) messages.push({ kind: 'describe', what: 'P', name: portal })
    if (choose.chance(0.05)) return messages
    // which rows come first is a matter of the plan
    const maxRows = isOrdered ? choose.pick([0, 0, 0, 0, 1, 2]) : 0
    messages.push({ kind: 'execute', portal, maxRows })
    if (maxRows > 0 && choose.chance(0.5))
      messages.push({ kind: 'execute', portal, maxRows: choose.pick([0, 1]) })
    if (choose.chance(0.1)) messages.push({ kind: 'close', what: 'P', name: portal })
    return messages
  }

  /** Without a statement: what is there already is described, read on or closed. */
  #loose(): ClientMessage[] {
    const choose = this.#choose
    const name = choose.pick(['', 's1', 's2'])
    const portal = choose.pick(['', 'p1', 'p2', 'c1'])
    return [
      choose.pick<ClientMessage>([
        { kind: 'describe', what: 'S', name },
        { kind: 'describe', what: 'P', name: portal },
        { kind: 'execute', portal, maxRows: choose.pick([0, 1]) },
        { kind: 'execute', portal, maxRows: choose.pick([0, 1]) },
        { kind: 'execute', portal, maxRows: choose.pick([0, 1]) },
        { kind: 'close', what: 'S', name },
        { kind: 'close', what: 'P', name: portal },
      ]),
    ]
  }
}

/** Conversations over four shards that were once answered otherwise than by one PostgreSQL; the keys lie on one shard each. */
import type { Step } from './session-steps.js'

type Keys = [a: number, b: number, c: number, d: number]

const query = (sql: string): Step => [{ kind: 'query', sql }]
const parse = (name: string, sql: string) => ({ kind: 'parse', name, sql, types: [] }) as const
const bind = (portal: string, statement: string, ...values: (number | string)[]) =>
  ({ kind: 'bind', portal, statement, values: values.map(String) }) as const
const execute = (portal = '', maxRows = 0) => ({ kind: 'execute', portal, maxRows }) as const
const describe = (what: 'S' | 'P', name = '') => ({ kind: 'describe', what, name }) as const
const close = (what: 'S' | 'P', name: string) => ({ kind: 'close', what, name }) as const
const flush = { kind: 'flush' } as const
const sync = { kind: 'sync' } as const

const ids = (k: number) => `select id from item where k = ${k} order by id`
const put = (k: number, id: number) => `insert into item values (${k}, ${id}, 'put', 1)`
const BY_KEY = 'select id from item where k = $1 order by id'

export const fixedConversations: readonly (readonly [string, (...keys: Keys) => Step[]])[] = [
  [
    'cursors on two shards are each read where they stand',
    (a, b) =>
      [
        'begin',
        `declare c1 scroll cursor for ${ids(a)}`,
        `declare c2 cursor for ${ids(b)}`,
        'fetch 1 from c1',
        'fetch 1 from c2',
        'move 1 in c2',
        'fetch backward 1 from c1',
        'close c2',
        `declare c2 cursor for ${ids(a)}`,
        'fetch all from c2; fetch all from c1',
        'close all',
        'fetch 1 from c1',
      ].map(query),
  ],
  [
    'the name of a cursor is taken on all shards',
    (a, b) =>
      ['begin', `declare c1 cursor for ${ids(a)}`, `declare c1 cursor for ${ids(b)}`].map(query),
  ],
  [
    'cursors end with their savepoint',
    (a, b) =>
      [
        'begin',
        ids(b),
        `declare c1 cursor for ${ids(a)}`,
        'savepoint s',
        `declare c2 cursor for ${ids(b)}`,
        'rollback to s',
        `declare c2 cursor for ${ids(a)}`,
        'fetch 1 from c2',
        'fetch 1 from c1',
      ].map(query),
  ],
  [
    'WHERE CURRENT OF changes the row at the cursor',
    (a, b) =>
      [
        'begin',
        ids(b),
        `declare c1 cursor for select id from item where k = ${a}`,
        'fetch 1 from c1',
        "update item set v = 'here' where current of c1",
        'commit',
      ].map(query),
  ],
  [
    'portals on two shards are read on',
    (a, b) => [
      query('begin'),
      [parse('s1', BY_KEY), bind('p1', 's1', a), execute('p1', 1), sync],
      [bind('p2', 's1', b), execute('p2', 1), sync],
      [execute('p2', 1), execute('p1', 1), sync],
      [close('P', 'p1'), bind('p1', 's1', b), execute('p1'), sync],
      [bind('p2', 's1', a), sync],
    ],
  ],
  [
    'what stands behind a flushed error is skipped on other shards too',
    (a, b) => [
      [
        ...[parse('', `select nope from item where k = ${a}`), describe('S'), flush],
        ...[parse('', put(b, 50)), bind('', ''), execute(), sync],
      ],
      query('begin'),
      [
        ...[parse('', `select nope from item where k = ${a}`), describe('S'), flush],
        ...[parse('', put(b, 51)), bind('', ''), execute(), sync],
      ],
      query('commit'),
      [execute('none'), flush, parse('', put(b, 52)), bind('', ''), execute(), sync],
    ],
  ],
  [
    'a write over shards with too many parameters is refused',
    () => [[parse('s2', 'delete from note where id = $1'), bind('', 's2', 7, 7), execute(), sync]],
  ],
  ['AND CHAIN needs a transaction', () => ['rollback and chain', 'commit and chain'].map(query)],
  [
    'answers come in the order of the messages',
    () => [
      [parse('', 'begin'), bind('', ''), execute(), parse('', 'select 1'), sync],
      [parse('', 'commit'), bind('', ''), execute(), close('S', 'none'), sync],
      [close('S', 's1'), parse('s1', 'select k, id from item'), bind('', 's1'), execute(), sync],
      [close('P', 'p'), parse('', 'select count(*) from item'), bind('', ''), execute(), sync],
      [parse('', 'copy item to stdout'), bind('', ''), describe('P'), execute(), sync],
      query('start transaction; start transaction; commit'),
    ],
  ],
  [
    'what stands before an error is answered, or fails, before it',
    () => [
      [parse('', 'select nope from item'), bind('p1', ''), execute('p2'), sync],
      [
        ...[parse('', "update item set v = 'w'"), bind('', ''), execute()],
        ...[bind('', 'unknown'), execute(), sync],
      ],
    ],
  ],
  [
    'savepoints of one name are as many on a shard that joins late',
    (a, b, c, d) =>
      [
        ...['begin', put(a, 50), 'savepoint a', 'savepoint b', put(b, 50), 'savepoint a'],
        ...[put(c, 50), 'release a', put(d, 50), 'rollback to a', put(d, 51), 'release a'],
        ...['rollback to a', 'rollback'],
      ].map(query),
  ],
  ['DISCARD ALL leaves what the client came with', () => [query('discard all')]],
  [
    'DECLARE and LOCK want a block: a string of statements is one, a pipeline is none',
    (a, b) => [
      [
        ...[parse('', `${put(a, 50)}, (${b}, 50, 'put', 1)`), bind('', ''), execute()],
        ...[parse('', `declare c1 cursor for ${ids(a)}`), bind('', ''), execute(), sync],
      ],
      query(`lock table item in share mode; ${put(a, 51)}`),
    ],
  ],
]

/** Scripts that try the edges of pgbench's language, for against-pgbench.test.ts. */
import type { RunFlags } from '../../../src/bench/bench-command.js'

export interface PgbenchCase {
  readonly name: string
  readonly script: string
  readonly flags?: Partial<RunFlags>
}

const named = (script: string, flags?: Partial<RunFlags>): PgbenchCase => ({
  name: JSON.stringify(script).slice(1, -1) + (flags ? ` ${JSON.stringify(flags)}` : ''),
  script,
  ...(flags ? { flags } : {}),
})

const keep = (value: string) => `insert into blog values('kept', ${value});\n`

/** Each is refused before anything runs, or ends its client at once. */
const broken = [
  ...['\\foo', '\\set', '\\set x', '\\set x 1 +', '\\set x 1 2', '\\set x (1', '\\set x nosuch(1)'],
  ...['\\set x random(1)', '\\set x least()', '\\set x 1e400', '\\set x 1e-400', '\\set x @'],
  ...['\\set x 9223372036854775808', '\\set x -(9223372036854775808)', "\\set x 'a'", '\\set x 1;'],
  ...[
    '\\set 1x 3',
    '\\set x-y 1',
    '\\set x case 1 when 1 then 2 end',
    '\\set x 1 is 2',
    '\\set x not',
  ],
  ...['\\if', '\\if true', '\\endif', '\\elif true', '\\if true\n\\endif extra', '\\sleep'],
  ...['\\if true\n\\else\n\\else\n\\endif', '\\sleep 1 foo', '\\sleep 1 ms bar', '\\sleep abc'],
  ...['\\sleep :x', '\\sleep 1s x', '\\gset', 'select 1 as one \\gset a b', '\\setrandom x 1 2'],
  ...['', '-- nothing', ';;', '\\set x 1 + :', '\\set x :nope + 1', '\\set x 1/0', '\\!ls'],
].map((script) => named(`${script}\n`))

const running = [
  '\\if true\n\\endif',
  '\\set x -9223372036854775808',
  '\\set é 1\nselect :é::int;',
  '\\SET x 1\nselect :x::int;',
  '\\ set x 1',
  '\\sleep 1ms\n\\sleep 0\n\\sleep -1 ms\n\\sleep 5 US',
  `\\set x 5\r\n${keep(':x::text')}\r\n\\if :x = 5\r\n${keep("'c'")}\r\n\\endif\r\n`,
  `\t\\set\tx\t5\n${keep(':x::text')}`,
  `\\set x 5\n${keep('$a$:x$a$')}`,
  `${keep("E'a\\'b;'")} ${keep(`"substr"('abc;',1,4)`)}`,
  `insert into blog /* a /* b; */ c; */ values('a','b'); insert into blog (select 'a', (select 'x;') )`,
  `\\set x 7\n\\set xy 8\n${keep('(:xy::int + :x ::int)::text')}`,
  `\\set x null\n${keep(':x')}`,
  'begin;\nselect 1;\n',
  `${keep("'before'")}select 1/0;\n${keep("'after'")}`,
  'selec 1;\n',
  "do $$ begin raise exception 'boom' using detail = 'd', hint = 'h'; end $$;\n",
  "do $$ begin raise notice 'hey' using detail = 'd', hint = 'h'; raise warning 'w'; end $$;\n",
  'select pg_terminate_backend(pg_backend_pid());\n',
  'copy blog from stdin;\n',
  'copy blog to stdout;\n',
  ';\nselect 1;\n',
].map((script) => named(script))

const results = [
  `select 1 as a, 'x' as b \\gset\n${keep(':a::text')}`,
  `select 1 as a, 2 as b \\gset p_\n${keep('(:p_a::int + :p_b::int)::text')}`,
  'select 1 as a where false \\gset\n',
  'select generate_series(1, 2) as a \\gset\n',
  keep("'b'").replace(';', ' \\gset'),
  `insert into blog values('a', 'b') returning v \\gset\n${keep(':v')}`,
  'select 1 as "a-b" \\gset\n',
  'select 1 \\gset\n',
  'select 1 as one \\gset 1\n',
  'select null as a \\gset\n\\set b :a\n',
  `select generate_series(1, 3) as a \\aset\n${keep(':a::text')}`,
  `update blog set k = k \\aset\n${keep("'y'")}`,
  `select 1 as a\\; select 2 as a \\gset\n${keep(':a::text')}`,
  'select 1/0 as a \\gset\n',
  "select 1.5 as a, 'on' as b, 'NaN' as c, '0x1p3' as d, '-inf' as e, 'oN' as f \\gset\n\\set v debug(:a)\n\\set v debug(:b)\n\\set v debug(:c)\n\\set v debug(:d)\n\\set v debug(:e)\n\\set v debug(:f)\n",
  "select '1e-400' as a \\gset\n\\set v :a\n",
  "select '1e999' as a \\gset\n\\set v :a\n",
  "select '12 ' as a \\gset\n\\set v :a\n",
  "select ' 12' as a, '+7' as b, '1.' as c, '.5' as d \\gset\n\\set v debug(:a)\n\\set v debug(:b)\n\\set v debug(:c)\n\\set v debug(:d)\n",
].map((script) => named(script))

const conditions = [
  ...['true', 'false', '0', '0.0', '0.1', 'null', ':x', ':u', '1/0', 'not null', '-1', 'debug(3)'],
].map((condition) =>
  named(`\\set x 0\n\\if ${condition}\n${keep("'t'")}\\else\n${keep("'f'")}\\endif\n`),
)

const nested = [
  "\\if false\n\\if true\nselect 1/0;\n\\elif true\nselect 2/0;\n\\else\nselect 3/0;\n\\endif\n\\elif true\n\\if false\nselect 4/0;\n\\else\n\\if true\ninsert into blog values('e', '');\n\\endif\n\\endif\n\\elif 1/0\nselect 5/0;\n\\else\nselect 6/0;\n\\endif\n",
  `\\if true\n\\elif 1/0\n\\endif\n${keep("'z'")}`,
  '\\if false\nselect 1/0;\n\\set x 1/0\n\\sleep 100 s\nselect 1 as a \\gset\n\\endif\n',
].map((script) => named(script))

const failing = (sqlstate: string) =>
  `do $$ begin raise exception 'boom' using errcode = '${sqlstate}'; end $$;\n`

const failures = [
  named(failing('40001')),
  named(failing('40P01'), { 'failures-detailed': true }),
  named(failing('40001'), {
    'max-tries': 4,
    'failures-detailed': true,
    'verbose-errors': true,
  }),
  named(`select 1;\n${failing('40001')}`, { 'max-tries': 3, 'report-per-command': true }),
  named(`begin;\n${failing('40001')}end;\n`, { 'max-tries': 2, transactions: 3 }),
  named(failing('23505'), { 'max-tries': 2 }),
]

const pipelines = [
  `\\startpipeline\n${keep("'1'")}select 1;\n${keep("'2'")}\\endpipeline\n`,
  '\\startpipeline\nselect 1;\n',
  `\\startpipeline\nselect 1/0;\n${keep("'never'")}\\endpipeline\n`,
  '\\endpipeline\n',
  '\\startpipeline\n\\startpipeline\n\\endpipeline\n',
  '\\startpipeline\n\\endpipeline\n',
  '\\startpipeline\nselect 1 as a \\gset\n\\endpipeline\n',
  `\\startpipeline\nbegin;\n${keep("'in'")}end;\n\\endpipeline\n`,
  `\\startpipeline\n\\set x 3\n\\if :x = 3\n${keep(':x')}\\endif\n\\sleep 1 ms\n\\endpipeline\nselect 1;\n`,
  '\\startpipeline\nbegin;\nselect 1;\n\\endpipeline\n',
  '\\startpipeline\ncopy blog to stdout;\n\\endpipeline\n',
].map((script) => named(script))

const definitions = [
  named(keep(':d::text'), { define: ['d=5', 'd=6'] }),
  named(keep(':d'), { define: ["d='a=b'"] }),
  named(`\\set e debug(:d * 2)\n`, { define: ['d=1.25'] }),
  named(`\\set e debug(:d or false)\n`, { define: ['d=of'] }),
  named(keep(':client_id::text'), { define: ['client_id=9'] }),
  named('select 1;', { define: ['d'] }),
  named('select 1;', { define: ['d='] }),
  named('select 1;', { define: ['1a=5'] }),
  named('\\set v debug(hash(1))\n\\set v debug(:default_seed)\n\\set v debug(:random_seed)\n', {
    seed: '9',
  }),
  named(keep(':random_seed::text'), { seed: '18446744073709551615' }),
]

export const pgbenchCases: readonly PgbenchCase[] = [
  ...broken,
  ...running,
  ...results,
  ...conditions,
  ...nested,
  ...failures,
  ...pipelines,
  ...definitions,
]

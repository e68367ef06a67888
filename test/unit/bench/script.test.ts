import { describe, expect, test } from 'vitest'
import { parseScript } from '../../../src/bench/script/script.js'
import { cutScript } from '../../../src/bench/script/script-lexer.js'
import { cutSql, fillSql, parameterSql, Variables } from '../../../src/bench/script/variables.js'

const sql = (script: string) =>
  cutScript(script).map((piece) => (piece.kind === 'sql' ? piece.text : `\\${piece.name}`))

const failure = (script: string): string => {
  try {
    parseScript('a.sql', script)
    return 'no error'
  } catch (error) {
    return (error as Error).message
  }
}

describe('splitting', () => {
  test.each<[string, string[]]>([
    ['select 1; select 2', ['select 1;', 'select 2']],
    ["select ';'; select 2;", ["select ';';", 'select 2;']],
    ["select e'\\';'; select 2;", ["select e'\\';';", 'select 2;']],
    ["select '\\'; select 2;", ["select '\\';", 'select 2;']],
    ['select ";"; select 2;', ['select ";";', 'select 2;']],
    ['select $a$;$b$;$a$; select 2;', ['select $a$;$b$;$a$;', 'select 2;']],
    ['select a$b; select c$b;', ['select a$b;', 'select c$b;']],
    ['select /* ; /* ; */ ; */ 1; select 2;', ['select /* ; /* ; */ ; */ 1;', 'select 2;']],
    ['select 1 -- ; \n; select 2;', ['select 1 -- ; \n;', 'select 2;']],
    ['-- a\n  select 1;', ['select 1;']],
    [
      'create rule r as on insert to a do (select 1; select 2); select 3;',
      ['create rule r as on insert to a do (select 1; select 2);', 'select 3;'],
    ],
    ['select 1 \\; select 2;', ['select 1 ; select 2;']],
    ['select 1 \\gset\nselect 2;', ['select 1 ', '\\gset', 'select 2;']],
    ['begin; end;', ['begin;', 'end;']],
    [
      'create function f() returns int begin atomic select 1; select case when true then 1 end; end; select 2;',
      [
        'create function f() returns int begin atomic select 1; select case when true then 1 end; end;',
        'select 2;',
      ],
    ],
    ['\\set a 1 + \\\n 2\nselect 1;', ['\\set', 'select 1;']],
    ['select 1; -- nothing after', ['select 1;']],
    ['', []],
  ])('%j', (script, wanted) => expect(sql(script)).toEqual(wanted))
})

describe('variables in SQL', () => {
  const variables = new Variables()
  variables.setText('id', '5', 'test')
  variables.setValue('half', 0.5, 'test')
  variables.setValue('nothing', null, 'test')

  test.each([
    ['select :id::text', 'select 5::text', 'select $1::text'],
    [
      "select ':id', 'a::b', '12:30'",
      "select '5', 'a::b', '12:30'",
      "select '$1', 'a::b', '12:30'",
    ],
    ['select :half, :nothing', 'select 0.5, NULL', 'select $1, $2'],
    ['select :unknown', 'select :unknown', 'select $1'],
    ['select :id+:id', 'select 5+5', 'select $1+$2'],
    ['select :::id', 'select :::id', 'select :::id'],
  ])('%s', (text, simple, extended) => {
    const template = cutSql(text)
    expect(fillSql(template, variables)).toBe(simple)
    expect(parameterSql(template)).toBe(extended)
  })
})

describe('what is wrong with a script', () => {
  test.each([
    ['\\set a 1 +', 'a.sql:1: syntax error in command "set"'],
    ['\n\\set a foo(1)', 'a.sql:2: unexpected function name (foo) in command "set"'],
    ['\\set a random(1)', 'a.sql:1: unexpected number of arguments (random) in command "set"'],
    ['\\set a least()', 'a.sql:1: at least one argument expected (least) in command "set"'],
    [
      '\\set a 9223372036854775808',
      'a.sql:1: bigint constant overflow (9223372036854775808) in command "set"',
    ],
    ['\\set a 1;', 'a.sql:1: unexpected character (;) in command "set"'],
    ['\\set a 1e-400', 'a.sql:1: double constant overflow (1e-400) in command "set"'],
    ['\\set a 1 < 2 < 3', 'a.sql:1: syntax error (at or near "<") in command "set"'],
    ['\\set', 'a.sql:1: missing argument in command "set"'],
    ['\\foo', 'a.sql:1: invalid command in command "foo"'],
    ['\\sleep', 'a.sql:1: missing argument in command "sleep"'],
    ['\\sleep 1 h', 'a.sql:1: unrecognized time unit, must be us, ms or s (h) in command "sleep"'],
    ['\\gset', 'a.sql:1: \\gset must follow an SQL command'],
    ['\\shell ls', 'a.sql:1: \\shell is not allowed'],
    ['\\else', 'condition error in script "a.sql" command 1: \\else without matching \\if'],
    ['\\if 1\n', 'condition error in script "a.sql" command 2: \\if without matching \\endif'],
    [
      '\\if 1\n\\else\n\\elif 1\n\\endif',
      'condition error in script "a.sql" command 3: \\elif after \\else',
    ],
    ['-- nothing', 'empty command list for script "a.sql"'],
  ])('%j', (script, message) => expect(failure(script)).toBe(message))
})

import { describe, expect, test } from 'vitest'
import { cutStatements } from '../../../src/cluster/statement-buffer.js'

describe('cutStatements', () => {
  test.each([
    ['select 1; select 2;', ['select 1', 'select 2'], ''],
    ["select 'a;b';", ["select 'a;b'"], ''],
    ["select 'it''s; fine'; x", ["select 'it''s; fine'"], ' x'],
    [String.raw`select E'a\';b'; y`, [String.raw`select E'a\';b'`], ' y'],
    [String.raw`select 'a\'; y`, [String.raw`select 'a\'`], ' y'],
    ['select "a;b";', ['select "a;b"'], ''],
    ['do $$ begin; end $$; z', ['do $$ begin; end $$'], ' z'],
    ['select $t$ a; $$ b; $t$;', ['select $t$ a; $$ b; $t$'], ''],
    ['select a$b; c', ['select a$b'], ' c'],
    ['select 1 -- no; not here\n;', ['select 1 -- no; not here'], ''],
    ['select /* a; /* b; */ c; */ 1;', ['select /* a; /* b; */ c; */ 1'], ''],
    ['create rule r as do (a; b);', ['create rule r as do (a; b)'], ''],
    [';;', [], ''],
  ])('%s', (text, statements, rest) => {
    expect(cutStatements(text)).toEqual({ statements, rest })
  })

  test.each([
    "select 'open;",
    'select $x$ open;',
    'select /* open;',
    'select "open;',
    'select (1;',
  ])('waits for the rest of %s', (text) => {
    expect(cutStatements(text)).toEqual({ statements: [], rest: text })
  })
})

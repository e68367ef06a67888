import { describe, expect, it } from 'vitest'
import { parseCommand, splitStatements } from '../../../src/admin/admin-command.js'

describe('console commands', () => {
  it.each([
    ['SHOW POOLS', { kind: 'show', what: 'pools', columns: [] }],
    ['show clients addr, state ;', { kind: 'show', what: 'clients', columns: ['addr', 'state'] }],
    ['PAUSE', { kind: 'pause', pools: {} }],
    ['pause MyDb', { kind: 'pause', pools: { database: 'mydb' } }],
    ['PAUSE "MyDb"', { kind: 'pause', pools: { database: 'MyDb' } }],
    ['RESUME "A ""b""" app', { kind: 'resume', pools: { user: 'A "b"', database: 'app' } }],
    ["RECONNECT 'x;y'", { kind: 'reconnect', pools: { database: 'x;y' } }],
    ['  RELOAD -- now', { kind: 'reload' }],
    ['/* c */ SHUTDOWN', { kind: 'shutdown' }],
    ['SHUTDOWN WAIT_FOR_CLIENTS', { kind: 'shutdown' }],
    ['KILL app', { kind: 'kill', database: 'app' }],
    ['KILL', { kind: 'kill', database: undefined }],
    ['SHOW SERVER MEMORY', { kind: 'show', what: 'server_memory', columns: [] }],
    ['SHOW PEERS', { kind: 'show', what: 'peers', columns: [] }],
    ['SET checkout_timeout TO 5', { kind: 'set_config', name: 'checkout_timeout', value: '5' }],
    ["SET auth_type = 'md5'", { kind: 'set_config', name: 'auth_type', value: 'md5' }],
    ['MAINTENANCE ON', { kind: 'maintenance', isOn: true, database: undefined }],
    ['maintenance off App', { kind: 'maintenance', isOn: false, database: 'app' }],
    ['SUSPEND', { kind: 'suspend' }],
    ['WAIT_CLOSE app', { kind: 'wait_close', database: 'app' }],
    ['DISABLE "App"', { kind: 'disable', database: 'App' }],
    ['ENABLE app', { kind: 'enable', database: 'app' }],
    ['HEALTHCHECK 4', { kind: 'healthcheck', poolId: 4 }],
    ['RESET PREPARED', { kind: 'reset', what: 'prepared' }],
    ['RESET QUERY_CACHE', { kind: 'reset', what: 'query_cache' }],
    ['RESET search_path', { kind: 'session', tag: 'RESET' }],
    ['FORCE_RELOAD', { kind: 'force_reload' }],
    [
      'PROBE postgres://a:b--c@h:1/d?sslmode=disable;',
      { kind: 'probe', url: 'postgres://a:b--c@h:1/d?sslmode=disable' },
    ],
    ['KILL_CLIENT 7', { kind: 'kill_client', id: 7 }],
    ['BAN', { kind: 'ban', poolId: undefined }],
    ['UNBAN 3', { kind: 'unban', poolId: 3 }],
    ['SHOW server_version', { kind: 'parameter', name: 'server_version' }],
    ['show transaction isolation level', { kind: 'parameter', name: 'transaction_isolation' }],
    [
      'SET extra_float_digits = 3',
      { kind: 'session', tag: 'SET', set: { name: 'extra_float_digits', value: '3' } },
    ],
    [
      "SET application_name TO 'A b'",
      { kind: 'session', tag: 'SET', set: { name: 'application_name', value: 'A b' } },
    ],
    ['BEGIN', { kind: 'session', tag: 'BEGIN', transaction: 'begin' }],
    ['SELECT 1', { kind: 'select', column: '?column?', value: 'one' }],
    ['select version()', { kind: 'select', column: 'version', value: 'version' }],
    ['', { kind: 'empty' }],
    [' ; ', { kind: 'empty' }],
  ])('%s', (sql, expected) => {
    expect(parseCommand(sql)).toEqual(expected)
  })

  it.each([
    ['frobnicate', '42601'],
    ['SHOW "POOLS', '42601'],
    ['RELOAD now', '42601'],
    ['PAUSE a b c', '42601'],
    ['KILL_CLIENT x', '42601'],
    ['SELECT * FROM pg_class', '0A000'],
    ['SHOW FDS', '0A000'],
    ['SETUP SCHEMA', '0A000'],
    ['MAINTENANCE', '42601'],
    ['DISABLE', '42601'],
    ['HEALTHCHECK app', '42601'],
    ['SUSPEND now', '42601'],
    ['RESHARD a b p', '0A000'],
    ['CREATE TABLE t ()', '0A000'],
  ])('%s is refused', (sql, sqlstate) => {
    expect(() => parseCommand(sql)).toThrow(
      expect.objectContaining({ sqlstate, hint: expect.any(String) }),
    )
  })

  it('splits a query string at semicolons that stand outside of quotes', () => {
    expect(splitStatements(`SHOW POOLS; PAUSE "a;b" ;; RESUME 'c;d';`)).toEqual([
      'SHOW POOLS',
      ' PAUSE "a;b" ',
      " RESUME 'c;d'",
    ])
    expect(splitStatements(' ; ')).toEqual([''])
  })
})

import { expect, test } from 'vitest'
import { parseCommand } from '../../../src/admin/admin-command.js'

test.each([
  ['RESHARD shop shop_new', { kind: 'reshard', from: 'shop', to: 'shop_new' }],
  ['copy_data "Shop" \'shop new\'', { kind: 'copy_data', from: 'Shop', to: 'shop new' }],
  ['REPLICATE a b;', { kind: 'replicate', from: 'a', to: 'b' }],
  ['SCHEMA_SYNC PRE a b', { kind: 'schema_sync', from: 'a', to: 'b' }],
  ['CUTOVER', { kind: 'cutover', task: undefined }],
  ['CUTOVER 12ab34cd', { kind: 'cutover', task: '12ab34cd' }],
  ['STOP_TASK a1b2c3d4', { kind: 'stop_task', task: 'a1b2c3d4' }],
  [`SET reshard.max_rate TO '20MB'`, { kind: 'set_move', name: 'max_rate', value: '20MB' }],
  ['SET reshard.wal_action = pause', { kind: 'set_move', name: 'wal_action', value: 'pause' }],
  ['SHOW TASKS', { kind: 'show', what: 'tasks', columns: [] }],
])('%s', (sql, command) => {
  expect(parseCommand(sql)).toEqual(command)
})

test.each([
  ['RESHARD shop', 'ADMIN_SYNTAX'],
  ['RESHARD a b my_publication', 'ADMIN_UNSUPPORTED'],
  ['COPY_DATA a b pub slot', 'ADMIN_UNSUPPORTED'],
  ['SCHEMA_SYNC POST a b', 'ADMIN_UNSUPPORTED'],
  ['SCHEMA_SYNC CUTOVER a b', 'ADMIN_UNSUPPORTED'],
  ['SCHEMA_SYNC a b', 'ADMIN_SYNTAX'],
  ['STOP_TASK', 'ADMIN_SYNTAX'],
  ['CUTOVER a b', 'ADMIN_SYNTAX'],
])('%s is refused', (sql, code) => {
  expect(() => parseCommand(sql)).toThrowError(expect.objectContaining({ code }))
})

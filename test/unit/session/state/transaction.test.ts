import { describe, expect, it } from 'vitest'
import { Settings } from '../../../../src/server/settings.js'
import { Transaction } from '../../../../src/session/state/transaction.js'

const begin = { kind: 'begin' } as const
const set = (name: string, value: string | null, local = false) =>
  ({ kind: 'set', name, value, local }) as const

describe('transaction', () => {
  it('undoes SET by ROLLBACK and keeps it by COMMIT', () => {
    const transaction = new Transaction(Settings.none)
    transaction.begin(begin, 'BEGIN', 'open')
    transaction.apply(set('work_mem', "'1MB'"), '')
    transaction.end(false)
    expect(transaction.settings).toBe(Settings.none)
    transaction.begin(begin, 'BEGIN', 'open')
    transaction.apply(set('work_mem', "'1MB'"), '')
    transaction.end(true)
    expect(transaction.settings.values.get('work_mem')).toBe("'1MB'")
  })

  it('undoes SET by ROLLBACK TO, and leaves the savepoint for servers that join later', () => {
    const transaction = new Transaction(Settings.none)
    transaction.begin(begin, 'BEGIN', 'open')
    transaction.savepoint('a')
    transaction.apply(set('x', '1'), 'SET x TO 1')
    transaction.savepoint('b')
    transaction.fail()
    transaction.rollbackTo('a')
    expect(transaction.phase).toBe('open')
    expect(transaction.settings).toBe(Settings.none)
    expect(transaction.replay).toEqual(['SAVEPOINT "a"'])
  })

  it('forgets released savepoints but not what was set under them', () => {
    const transaction = new Transaction(Settings.none)
    transaction.begin(begin, 'BEGIN', 'open')
    transaction.savepoint('a')
    transaction.apply(set('x', '1', true), 'SET LOCAL x TO 1')
    transaction.release('a')
    expect(transaction.replay).toEqual(['SET LOCAL x TO 1'])
  })

  it('undoes what a failed request outside a transaction has set', () => {
    const transaction = new Transaction(Settings.none)
    transaction.apply(set('x', '1'), '')
    transaction.undoImplicit()
    expect(transaction.settings).toBe(Settings.none)
    transaction.apply(set('x', '1'), '')
    transaction.keepImplicit()
    transaction.undoImplicit()
    expect(transaction.settings.values.get('x')).toBe('1')
  })

  it('goes back to the values of the startup packet by RESET', () => {
    const startup = Settings.none.with('datestyle', "'ISO, DMY'")
    const transaction = new Transaction(startup)
    transaction.apply(set('datestyle', "'German'"), '')
    transaction.apply({ kind: 'reset', name: 'DateStyle' }, '')
    expect(transaction.settings).toBe(startup)
  })
})

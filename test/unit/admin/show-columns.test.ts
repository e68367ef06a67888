/** Every SHOW against the columns that PgDog and PgBouncer have, as they were written down (fixtures/admin). */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseCommand, SHOW_TABLES } from '../../../src/admin/admin-command.js'
import { answerCommand, shapeOf } from '../../../src/admin/answer-command.js'
import { fakeProxy } from './fake-proxy.js'

type Columns = Readonly<Record<string, readonly string[]>>
const recorded: Readonly<Record<'pgdog' | 'shared' | 'pgbouncer', Columns>> = JSON.parse(
  readFileSync(new URL('../../../fixtures/admin/show-columns.json', import.meta.url), 'utf8'),
)

/** PgBouncer's averages of bytes have names of their own, which its exporters do not read. */
const renamed: Readonly<Record<string, string>> = { avg_recv: 'avg_received' }

const shapeOn = (database: string, what: string) =>
  shapeOf(parseCommand(`SHOW ${what}`), database) ?? []

const columnsOf = (what: string): string[] => shapeOn('pgdog', what).map(({ name }) => name)

describe('columns of SHOW', () => {
  test.each(Object.entries(recorded.pgdog))(
    "D205: SHOW %s begins with PgDog's",
    (what, columns) => {
      expect(columnsOf(what).slice(0, columns.length)).toEqual(columns)
    },
  )

  test.each(Object.entries(recorded.pgbouncer))(
    "D205: SHOW %s on the database pgbouncer is PgBouncer's, name by name and type by type",
    (what, columns) => {
      expect(shapeOn('pgbouncer', what).map(({ name, type }) => `${name} ${type}`)).toEqual(columns)
    },
  )

  test.each(Object.entries(recorded.shared))(
    "D205: SHOW %s has PgBouncer's on the other databases too",
    (what, columns) => {
      const names = columnsOf(what)
      const wanted = columns.map((name) => renamed[name] ?? name)
      expect(wanted.filter((name) => !names.includes(name))).toEqual([])
    },
  )

  test.each(['pgdog', 'pgbouncer'])(
    'no column has a name twice, and every row has a cell for each: %s',
    async (database) => {
      const { view, control } = fakeProxy()
      const identity = { user: 'admin', database }
      const context = { view: () => view, control, identity, settings: new Map<string, string>() }
      for (const what of SHOW_TABLES) {
        const command = parseCommand(`SHOW ${what}`)
        const { columns, rows } = await answerCommand(command, context)
        const names = columns.map(({ name }) => name)
        expect([what, names.length]).toEqual([what, new Set(names).size])
        for (const row of rows) expect([what, row.length]).toEqual([what, names.length])
      }
    },
  )

  test('SHOW HELP names every table', async () => {
    const { view, control } = fakeProxy()
    const identity = { user: 'admin', database: 'pgdog' }
    const context = { view: () => view, control, identity, settings: new Map<string, string>() }
    const { rows } = await answerCommand(parseCommand('SHOW HELP'), context)
    const help = rows.map(([command]) => String(command).toLowerCase().replaceAll(' ', '_'))
    const missing = [...SHOW_TABLES].filter(
      (what) => what !== 'help' && !help.some((line) => line.includes(what)),
    )
    expect(missing).toEqual([])
  })
})

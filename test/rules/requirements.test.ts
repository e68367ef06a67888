/** `npm run requirements` counts what proves a row, and nothing else; titles and limits name rows that are there. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

interface Verdict {
  covered: number
  refused: number
  missing: number
  rows: {
    id: string
    state: string
    conditional: boolean
    tests: string[]
    idle: string[]
    limits: string[]
  }[]
  unknown: { id: string; where: string }[]
}

const ask = (...parameters: string[]): Verdict =>
  JSON.parse(
    execFileSync(process.execPath, ['scripts/requirements.mjs', '--json', ...parameters], {
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    }),
  )

describe('rows and what names them', () => {
  let root: string
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'pgshard-requirements-'))
    for (const folder of ['fixtures', 'docs', 'test/support'])
      mkdirSync(join(root, folder), { recursive: true })
    const rows = Array.from({ length: 15 }, (_, i) => `D${i + 1}\tPart\tWhat ${i + 1} says.`)
    writeFileSync(
      join(root, 'fixtures/requirements.tsv'),
      `id\tsection\trequirement\n${rows.join('\n')}\n`,
    )
    writeFileSync(
      join(root, 'docs/limits.md'),
      [
        '| a thing | refused (D6) |',
        '- Another. (D7, D99)',
        '- In the middle (D8) of it.',
        '',
      ].join('\n'),
    )
    writeFileSync(
      join(root, 'test/support/help.ts'),
      'export const help = () => { expect(1).toBe(1) }\n',
    )
    writeFileSync(
      join(root, 'test/some.test.ts'),
      `test('D1: checks', () => { expect(1).toBe(1) })
test('D2, D3–D4: through a helper', async () => { await help() })
test('D5: checks nothing', () => { doSomething() })
test.skip('D9: skipped', () => { expect(1).toBe(1) })
test('about D10, not at its head', () => { expect(1).toBe(1) })
describe('D11: a suite', () => {
  it.each([1, 2])('D12: each %s', async (n) => { await expect(ask(n)).resolves.toBe(n) })
})
test.skipIf(isMissing('pgbench'))('D15: where it can', () => { expect(1).toBe(1) })
test.skipIf(isMissing('pgbench'))('D1: and there', () => { expect(1).toBe(1) })
describe.skip('left out', () => { it('D13: inside', () => { expect(1).toBe(1) }) })
// test('D14: only a comment', () => { expect(1).toBe(1) })
`,
    )
  })
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  test('covered by a test that checks, refused by a limit, else missing', () => {
    const { rows, unknown } = ask('--root', root)
    const of = (state: string) => rows.filter((row) => row.state === state).map(({ id }) => id)
    expect(of('covered')).toEqual(['D1', 'D2', 'D3', 'D4', 'D11', 'D12', 'D15'])
    expect(of('refused')).toEqual(['D6', 'D7'])
    expect(of('missing')).toEqual(['D5', 'D8', 'D9', 'D10', 'D13', 'D14'])
    expect(rows.find(({ id }) => id === 'D5')?.idle).toEqual([
      'test/some.test.ts: D5: checks nothing',
    ])
    // nothing but a test that is left out on some machines
    expect(rows.filter((row) => row.conditional).map(({ id }) => id)).toEqual(['D15'])
    expect(unknown).toEqual([{ id: 'D99', where: 'docs/limits.md' }])
  })

  test('only the asked rows, and exit 1 when strict and something is missing', () => {
    expect(ask('--root', root, '--section', 'D2-D4,D6').rows.map(({ id }) => id)).toEqual([
      'D2',
      'D3',
      'D4',
      'D6',
    ])
    expect(() => ask('--root', root, '--strict')).toThrow(/Command failed/)
  })
})

test('titles and limits of this project name rows that are there', () => {
  expect(ask('--section', 'L,D,B,X,J,O').unknown).toEqual([])
})

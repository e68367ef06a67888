/** Names of tests are unique in their file, and nothing is skipped or singled out in silence. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { filesUnder } from './source-files.js'

const files = filesUnder('test', /\.test\.ts$/)

/** "suite indent + name" of each test written out; tables (test.each) name theirs by their rows. */
function namesOf(text: string): string[] {
  const suites: { indent: number; name: string }[] = []
  const names: string[] = []
  for (const line of text.split('\n')) {
    const match = /^( *)(describe|test|it)\(\s*(['"`])(.*?)\3/.exec(line)
    if (!match) continue
    const indent = (match[1] ?? '').length
    while ((suites.at(-1)?.indent ?? -1) >= indent) suites.pop()
    const path = [...suites.map(({ name }) => name), match[4]].join(' > ')
    if (match[2] === 'describe') suites.push({ indent, name: match[4] ?? '' })
    else names.push(path)
  }
  return names
}

test('test names are unique within their file', () => {
  const twice = files.flatMap((file) => {
    const names = namesOf(readFileSync(file, 'utf8'))
    return names.filter((name, i) => names.indexOf(name) !== i).map((name) => `${file}: ${name}`)
  })
  expect(twice).toEqual([])
})

test('no test is singled out', () => {
  const only = /\b(test|it|describe)\.only\b/
  expect(files.filter((file) => only.test(readFileSync(file, 'utf8')))).toEqual([])
})

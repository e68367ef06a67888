/** Links between the pages: each names a file, and a heading of it, that is there. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'

const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

/** What a heading is called in an address. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

const anchorsOf = (path: string): string[] =>
  [...readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    anchorOf(heading ?? ''),
  )

function faultOf(page: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? page : normalize(join(dirname(page), path))
  if (!existsSync(target)) return `${page}: ${link} is not there`
  if (anchor === undefined || anchorsOf(target).includes(anchor)) return undefined
  return `${page}: ${link} has no such heading`
}

test('no link between pages is broken', () => {
  const links = pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/\]\(<?([^)\s>]+)>?\)/g)]
      .map(([, link]) => link ?? '')
      .filter((link) => !/^[a-z]+:/.test(link))
      .map((link) => ({ page, link })),
  )
  expect(links.length).toBeGreaterThan(40)
  expect(links.flatMap(({ page, link }) => faultOf(page, link) ?? [])).toEqual([])
})

test('a broken link is seen', () => {
  expect(faultOf('README.md', 'docs/nothing.md')).toBe('README.md: docs/nothing.md is not there')
  expect(faultOf('docs/web.md', 'config.md#nothing')).toMatch(/no such heading$/)
  expect(faultOf('docs/web.md', '../README.md#limits')).toBeUndefined()
})

/** The configuration's table of keys and the list of metrics: docs/config.md and docs/metrics.md up to date, every working key read by the program. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { page as benchmarksPage } from '../../scripts/benchmarks.mjs'
import { configPage, metricsPage } from '../../scripts/write-reference.mjs'
import * as families from '../../src/admin/metrics/families.js'
import * as figures from '../../src/admin/stats-figures.js'
import * as sections from '../../src/config/keys/config-sections.js'
import { outputName } from '../../src/config/keys/key-types.js'
import { refusedKeys } from '../../src/config/keys/refused-keys.js'
import * as buckets from '../../src/metrics/time-buckets.js'
import { readSources } from './source-files.js'

test('docs/config.md is what the keys say (npm run docs)', () => {
  expect(readFileSync('docs/config.md', 'utf8')).toBe(configPage(sections))
})

test('docs/metrics.md is what a scrape holds (npm run docs)', () => {
  expect(readFileSync('docs/metrics.md', 'utf8')).toBe(metricsPage(families, figures, buckets))
})

test('docs/benchmarks.md is what bench/results holds (node scripts/benchmarks.mjs)', () => {
  expect(readFileSync('docs/benchmarks.md', 'utf8')).toBe(benchmarksPage())
})

describe('keys', () => {
  const known = sections.configSections.flatMap((section) => [
    `${section.name}.*`,
    ...Object.keys(section.keys).map((key) => `${section.name}.${key}`),
  ])

  test('what is refused is a key', () => {
    const unknown = [...refusedKeys].filter((key) => !known.includes(key))
    expect(unknown).toEqual([])
  })

  /** Read by the configuration itself, which hands on what they mean. */
  const resolved = ['two_phase_commit', 'hba', 'hba_file']

  test('a key of [general] that counts as working is read somewhere', () => {
    const text = readSources(['src', 'commands'], /^src\/config\/(?!pool-settings)/)
    const unread = Object.entries(sections.generalKeys)
      .filter(([key, definition]) => sections.effectOf('general', key, definition) === 'working')
      .map(([key, definition]) => [key, outputName(key, definition.unit)] as const)
      .filter(([, name]) => !new RegExp(`\\b${name}\\b`).test(text))
    expect(unread.map(([key]) => key).filter((key) => !resolved.includes(key))).toEqual([])
  })

  test('a key of [general] that is read is not said to do nothing', () => {
    const text = readSources(['src', 'commands'], /^src\/config\//)
    // Words that also mean something else in the code.
    const ambiguous = ['prepared_statements', 'dry_run', 'workers', 'workers_mode']
    const read = Object.entries(sections.generalKeys)
      .filter(([key]) => refusedKeys.has(`general.${key}`))
      .filter(([key, definition]) =>
        new RegExp(`\\.${outputName(key, definition.unit)}\\b`).test(text),
      )
      .map(([key]) => key)
      .filter((key) => !ambiguous.includes(key))
    expect(read).toEqual([])
  })

  test('every key has a summary that is a sentence', () => {
    const wrong = sections.configSections.flatMap((section) =>
      Object.entries(section.keys)
        .filter(([, { summary }]) => !/[.]$/.test(summary))
        .map(([key]) => `${section.name}.${key}`),
    )
    expect(wrong).toEqual([])
  })
})

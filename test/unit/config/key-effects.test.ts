/**
 * Every key of every section, flipped: a key that works changes what the rooms below are handed, one that is refused is
 * refused by name, one that is not needed here says why. A new key that this page cannot flip fails.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { configSections, effectOf } from '../../../src/config/keys/config-sections.js'
import type { KeyDefinition } from '../../../src/config/keys/key-types.js'
import { loadConfig } from '../../../src/config/load-config.js'

type Table = Record<string, unknown>
type Tables = Record<string, Table | Table[]>

const directory = mkdtempSync(join(tmpdir(), 'keys-'))
const centres = join(directory, 'centres.json')
writeFileSync(centres, '[[1,2],[3,4]]')
const hba = join(directory, 'hba.conf')
writeFileSync(hba, 'host all all 10.0.0.0/8 scram-sha-256\n')

const plugin = join(directory, 'p.mjs')
writeFileSync(plugin, 'export default {}')
const otherPlugin = join(directory, 'q.mjs')
writeFileSync(otherPlugin, 'export default {}')

const base: Tables = {
  general: {},
  databases: [
    { name: 'app', host: '127.0.0.1', shard: 0 },
    { name: 'app', host: '127.0.0.2', shard: 1 },
    { name: 'other', host: '127.0.0.3' },
  ],
  users: [{ name: 'u', database: 'app', password: 'p' }],
  sharded_tables: [{ database: 'app', name: 't', column: 'k' }],
}

/** Entries that a section needs before one of its keys can be flipped. */
const sectionBase: Record<string, Table> = {
  databases: base['databases'] as never,
  sharded_mappings: {
    database: 'app',
    table: 't',
    column: 'k',
    kind: 'list',
    values: [1],
    shard: 0,
  },
  'sharded_tables.mapping': { values: [1], shard: 0 },
  sharded_schemas: { database: 'app', name: 's', shard: 0 },
  omnisharded_tables: { database: 'app', tables: ['r'] },
  query_parsers: { database: 'app' },
  mirroring: { source_db: 'app', destination_db: 'other' },
  plugins: { name: 'p', module: plugin },
  vault: {
    url: 'http://v',
    auth_method: 'approle',
    approle_role_id: 'r',
    approle_secret_id_file: '/s',
  },
  ha: { state: 'host=s dbname=x' },
  ha_groups: { name: 'g', database: 'app', primary: 'host=a dbname=x', standby: 'host=b dbname=x' },
  function_routes: { database: 'app', function: 'f', shard: 1 },
  admin: { password: 'a' },
  otel: { endpoint: 'http://o' },
}

/** What a flip needs beside it, or another value than the type would suggest. */
const special: Record<string, { value: unknown; with?: Tables; entry?: Table }> = {
  'general.hba': { value: ['host all all 10.0.0.0/8 scram-sha-256'] },
  'general.hba_file': { value: hba },
  'general.host': { value: '127.0.0.9' },
  'general.log_level': { value: 'error' },
  'general.openmetrics_namespace': { value: 'x_' },
  'general.web_token': { value: 'a-token-of-some-length' },
  'databases.shard': { value: 1, entry: { name: 'app', host: '127.0.0.4', role: 'replica' } },
  'sharded_mappings.kind': { value: 'default' },
  'plugins.module': { value: otherPlugin },
  'users.auth_type': { value: 'md5' },
  'users.database': { value: 'other' },
  'query_parsers.database': { value: 'other' },
  'users.databases': { value: ['other'] },
  'users.password_hash': {
    value:
      'SCRAM-SHA-256$4096:MTIzNDU2Nzg5MDEyMzQ1Ng==$Y2YnbE6Z1rmC0XWeBWSrCaIiF6OuUqFQ8R6eQ4p0zyY=:ZEbzCEBE0sKzFiBQtVHWnyqJWcZaTk4vVWT8Ffm0ZGE=',
  },
  'sharded_tables.data_type': { value: 'uuid' },
  'sharded_tables.centroids': {
    value: [
      [1, 2],
      [3, 4],
    ],
    entry: { data_type: 'vector' },
  },
  'sharded_tables.centroids_path': { value: centres, entry: { data_type: 'vector' } },
  'sharded_tables.mapping': { value: [{ values: [1], shard: 0 }, { shard: 1 }] },
  'sharded_tables.bucket_map': { value: [1, 0, 1, 0], entry: { buckets: 4 } },
  'sharded_tables.buckets': { value: 8 },
}

const textFor = (definition: KeyDefinition): unknown => {
  switch (definition.type) {
    case 'boolean':
      return definition.fallback !== true
    case 'integer':
    case 'milliseconds':
    case 'seconds':
    case 'bytes':
      return Math.min(
        definition.max ?? 77,
        (definition.min ?? 0) + (definition.fallback === 77 ? 1 : 77),
      )
    case 'number':
      return 0.5
    case 'enum':
      return definition.values!.find((value) => value !== definition.fallback)
    case 'strings':
      return ['flipped']
    case 'integers':
      return [1, 0]
    case 'headers':
      return { flipped: 'x' }
    case 'value':
      return 7
    case 'values':
      return [7]
    case 'vectors':
      return [[1, 2]]
    default:
      return 'flipped'
  }
}

let files = 0

/** What is handed on, as text; or the message of the refusal. */
function loaded(tables: Tables): { handed: string; warnings: string; refusal?: string } {
  const at = join(directory, String(++files))
  const { users, admin, ...rest } = tables
  writeFileSync(`${at}.toml`, stringify(rest))
  writeFileSync(
    `${at}.users.toml`,
    stringify({ ...(users ? { users } : {}), ...(admin ? { admin } : {}) }),
  )
  try {
    const {
      shown: _,
      warnings,
      files: __,
      ...handed
    } = loadConfig({
      configPath: `${at}.toml`,
      usersPath: `${at}.users.toml`,
      databaseUrls: [],
      env: {},
    })
    const plain = (_key: string, value: unknown): unknown =>
      value instanceof Map ? [...value] : value === Number.POSITIVE_INFINITY ? 'unlimited' : value
    return { handed: JSON.stringify(handed, plain), warnings: warnings.join('\n') }
  } catch (error) {
    const { message, detail } = error as { message: string; detail?: string }
    return { handed: '', warnings: '', refusal: `${message} ${detail ?? ''}` }
  }
}

/** `base` with one section's entry in it, and in that the key. */
function withEntry(section: string, entry: Table, others: Tables = {}): Tables {
  const list = configSections.find(({ name }) => name === section)?.list
  const merged: Tables = { ...base, ...others }
  if (section === 'sharded_tables.mapping') {
    return {
      ...merged,
      sharded_tables: [{ database: 'app', name: 't', column: 'k', mapping: [entry, { shard: 1 }] }],
    }
  }
  if (section === 'databases')
    return { ...merged, databases: [...(base['databases'] as Table[]).slice(0, 2), entry] }
  if (section === 'general')
    return { ...merged, general: { ...(others['general'] as Table), ...entry } }
  if (section === 'ha') return { ...merged, ha: entry, ha_groups: [sectionBase['ha_groups']!] }
  if (section === 'ha_groups') return { ...merged, ha: sectionBase['ha']!, ha_groups: [entry] }
  return { ...merged, [section]: list ? [entry] : entry }
}

const keys = configSections.flatMap((section) =>
  Object.entries(section.keys).map(([key, definition]) => ({
    name: `${section.name}.${key}`,
    section: section.name,
    key,
    definition,
    effect: effectOf(section.name, key, definition),
  })),
)

function flip({ name, section, key, definition }: (typeof keys)[number]) {
  const {
    value = textFor(definition),
    with: others = {},
    entry = {},
  } = special[name] ?? { value: textFor(definition) }
  const first = section === 'databases' ? (base['databases'] as Table[])[2] : undefined
  const own =
    first ?? sectionBase[section] ?? (Array.isArray(base[section]) ? base[section][0] : {})
  const before = { ...own, ...entry }
  return {
    before: loaded(withEntry(section, before, others)),
    after: loaded(withEntry(section, { ...before, [key]: value }, others)),
  }
}

const named = (effect: string) => keys.filter((one) => one.effect === effect)

describe('keys of the configuration', () => {
  it.each(named('working'))('$name changes what is handed on', (one) => {
    const { before, after } = flip(one)
    // Refused without it, or with it: then it is looked at, too.
    const outcome = ({ handed, refusal }: typeof before) => [handed, refusal !== undefined]
    expect(outcome(after), 'the same with and without').not.toEqual(outcome(before))
  })

  it.each(named('unused'))('$name says why it is not needed', (one) => {
    const { after } = flip(one)
    expect(`${after.warnings}${after.refusal ?? ''}`).toContain(one.definition.unused!.slice(0, 30))
  })

  it.each(named('refused'))('$name is refused by name', (one) => {
    const { after } = flip(one)
    expect(after.refusal ?? after.warnings).toMatch(new RegExp(one.key.split('.').at(-1)!))
  })
})

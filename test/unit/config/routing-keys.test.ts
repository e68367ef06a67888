/**
 * Each key that decides where rows and statements go, written and taken out again: a statement is routed otherwise.
 * A line that ends in `#` is the key's own.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load-config.js'
import { describeRoutes } from '../../../src/routing/describe-route.js'
import { plannerOptions } from '../../../src/routing/planner-options.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'

const directory = mkdtempSync(join(tmpdir(), 'routing-keys-'))
const centres = join(directory, 'centres.json')
writeFileSync(centres, '[[0,0],[9,9]]')
let files = 0

const shards = [0, 1, 2, 3].map(
  (shard) =>
    `[[databases]]\nname = "app"\nhost = "127.0.0.1"\ndatabase_name = "s${shard}"\nshard = ${shard}`,
)

/** Where the statement goes: `0`, `0,1,2,3`, the code of a refusal, or what is wrong with the configuration. */
async function routeOf(toml: string, sql: string): Promise<string> {
  const configPath = join(directory, `${++files}.toml`)
  writeFileSync(configPath, `${toml}\n${shards.join('\n')}\n`)
  let config: ReturnType<typeof loadConfig>
  try {
    config = loadConfig({ configPath, databaseUrls: [], env: {} })
  } catch (error) {
    const { message, detail } = error as { message: string; detail?: string }
    return `${message} ${detail ?? ''}`
  }
  const planner = await openQueryPlanner({
    sharding: config.sharding.get('app')!,
    ...plannerOptions(config, 'app'),
  })
  const [route] = describeRoutes(planner, sql, undefined, { searchPath: ['public'] })
  return route!.error?.code ?? (route!.any_shard ? 'any' : `${route!.how} ${route!.shards.join()}`)
}

interface Case {
  readonly key: string
  /** Its lines that end in `#` are left out for `without`. */
  readonly toml: string
  readonly sql: string
  readonly with: string | RegExp
  readonly without: string | RegExp
}

const seven = 'select * from t where k = 7'
/** Where the hash of four shards has key 7. */
const HASHED = 'relay 3'
const start = '[[sharded_tables]]\ndatabase = "app"\ncolumn = "k"\n'
const table = `${start}name = "t"\n`
const sevenText = "select * from t where k = '7'"
/** A list of one value beside a rule for the others, which lie on shard 0. */
const listed = (own: string) =>
  `${table}[[sharded_tables.mapping]]\n${own}\n[[sharded_tables.mapping]]\nshard = 0`
const listedApart = (own: string, of = table) =>
  `${of}[[sharded_mappings]]\n${own}\n[[sharded_mappings]]\ndatabase = "app"\ncolumn = "k"\nshard = 0`
const apart = 'database = "app"\ncolumn = "k"\nshard = 2\n'
const schema = (own: string, others = 'shard = 1') =>
  `[[sharded_schemas]]\n${own}\n[[sharded_schemas]]\ndatabase = "app"\n${others}`
const func = (own: string) => `[[function_routes]]\ndatabase = "app"\nfunction = "f"\n${own}`
const vector = "insert into t (k) values ('[8,8]')"
const vectors = `${table}data_type = "vector"\n`
const groups = `[ha]\nstate = "host=s dbname=x"\n[[ha_groups]]\nname = "g"\ndatabase = "app"\nshard = 2\nprimary = "host=127.0.0.1 dbname=s2"\nstandby = "host=b dbname=x"\n`
const needs = (section: string, key: string) => new RegExp(`${section}.* needs the key "${key}"`)

const cases: readonly Case[] = [
  {
    key: 'sharded_tables.database',
    toml: '[[sharded_tables]]\nname = "t"\ncolumn = "k"\ndatabase = "app" #',
    ...{ sql: seven, with: HASHED, without: needs('sharded_tables', 'database') },
  },
  {
    key: 'sharded_tables.column',
    toml: '[[sharded_tables]]\ndatabase = "app"\nname = "t"\ncolumn = "k" #',
    ...{ sql: seven, with: HASHED, without: needs('sharded_tables', 'column') },
  },
  {
    key: 'sharded_tables.name',
    toml: `${start}name = "t" #`,
    ...{ sql: 'select * from u where k = 7', with: 'any', without: HASHED },
  },
  {
    key: 'sharded_tables.schema',
    toml: `${table}schema = "x" #`,
    ...{ sql: seven, with: 'any', without: HASHED },
  },
  {
    key: 'sharded_tables.data_type',
    toml: `${table}data_type = "text" #`,
    ...{ sql: sevenText, with: 'relay 0', without: HASHED },
  },
  {
    key: 'sharded_tables.hasher',
    toml: `${table}hasher = "sha1" #`,
    ...{ sql: seven, with: 'relay 2', without: HASHED },
  },
  {
    key: 'sharded_tables.buckets',
    toml: `${table}buckets = 5 #`,
    ...{ sql: seven, with: 'relay 2', without: HASHED },
  },
  {
    key: 'sharded_tables.bucket_map',
    toml: `${table}bucket_map = [2, 1, 0, 1] #`,
    ...{ sql: seven, with: 'relay 1', without: HASHED },
  },
  {
    key: 'sharded_tables.centroids',
    toml: `${vectors}centroids = [[0, 0], [9, 9]] #`,
    ...{ sql: vector, with: 'relay 1', without: /centroids/ },
  },
  {
    key: 'sharded_tables.centroids_path',
    toml: `${vectors}centroids_path = "${centres}" #`,
    ...{ sql: vector, with: 'relay 1', without: /centroids/ },
  },
  {
    key: 'sharded_tables.mapping',
    toml: `${table}mapping = [{ values = [7], shard = 2 }, { shard = 0 }] #`,
    ...{ sql: seven, with: 'relay 2', without: HASHED },
  },
  {
    key: 'sharded_tables.mapping.values',
    toml: listed('shard = 2\nvalues = [7] #'),
    ...{ sql: seven, with: 'relay 2', without: /one entry with a shard only/ },
  },
  {
    key: 'sharded_tables.mapping.start',
    toml: listed('shard = 2\nend = 100\nstart = 8 #'),
    ...{ sql: seven, with: 'relay 0', without: 'relay 2' },
  },
  {
    key: 'sharded_tables.mapping.end',
    toml: listed('shard = 2\nstart = 1\nend = 7 #'),
    ...{ sql: seven, with: 'relay 0', without: 'relay 2' },
  },
  {
    key: 'sharded_tables.mapping.shard',
    toml: listed('values = [7]\nshard = 2 #'),
    ...{ sql: seven, with: 'relay 2', without: needs('mapping', 'shard') },
  },
  {
    key: 'sharded_mappings.database',
    toml: listedApart('column = "k"\nshard = 2\nvalues = [7]\ndatabase = "app" #'),
    ...{ sql: seven, with: 'relay 2', without: needs('sharded_mappings', 'database') },
  },
  {
    key: 'sharded_mappings.column',
    toml: listedApart('database = "app"\nshard = 2\nvalues = [7]\ncolumn = "k" #'),
    ...{ sql: seven, with: 'relay 2', without: needs('sharded_mappings', 'column') },
  },
  {
    key: 'sharded_mappings.table',
    toml: `${listedApart(`${apart}values = [7]\ntable = "u" #`)}\n${start}name = "u"`,
    ...{ sql: seven, with: 'relay 0', without: 'relay 2' },
  },
  {
    key: 'sharded_mappings.schema',
    toml: `${listedApart(`${apart}values = [7]\nschema = "x" #`)}\n${table}schema = "x"`,
    ...{ sql: seven, with: 'relay 0', without: 'relay 2' },
  },
  {
    key: 'sharded_mappings.kind',
    toml: listedApart(`${apart}values = [7]\nkind = "default" #`),
    ...{ sql: seven, with: /kind = "default" contradicts/, without: 'relay 2' },
  },
  {
    key: 'sharded_mappings.values',
    toml: listedApart(`${apart}values = [7] #`),
    ...{ sql: seven, with: 'relay 2', without: /one entry with a shard only/ },
  },
  {
    key: 'sharded_mappings.start',
    toml: listedApart(`${apart}end = 100\nstart = 8 #`),
    ...{ sql: seven, with: 'relay 0', without: 'relay 2' },
  },
  {
    key: 'sharded_mappings.end',
    toml: listedApart(`${apart}start = 1\nend = 7 #`),
    ...{ sql: seven, with: 'relay 0', without: 'relay 2' },
  },
  {
    key: 'sharded_mappings.shard',
    toml: listedApart('database = "app"\ncolumn = "k"\nvalues = [7]\nshard = 2 #'),
    ...{ sql: seven, with: 'relay 2', without: needs('sharded_mappings', 'shard') },
  },
  {
    key: 'sharded_schemas.database',
    toml: schema('name = "x"\nshard = 2\ndatabase = "app" #'),
    ...{ sql: 'table x.t', with: 'relay 2', without: needs('sharded_schemas', 'database') },
  },
  {
    key: 'sharded_schemas.name',
    toml: schema('database = "app"\nshard = 2\nname = "x" #', 'name = "y"'),
    ...{ sql: 'table z.t', with: 'any', without: 'relay 2' },
  },
  {
    key: 'sharded_schemas.shard',
    toml: schema('database = "app"\nname = "x"\nshard = 2 #'),
    ...{ sql: 'table x.t', with: 'relay 2', without: 'relay 0' },
  },
  {
    key: 'sharded_schemas.all',
    toml: schema('database = "app"\nname = "x"\nall = true #', 'name = "y"'),
    ...{ sql: 'table x.t', with: 'any', without: 'relay 0' },
  },
  {
    key: 'omnisharded_tables.database',
    toml: `${schema('database = "app"\nshard = 1', 'name = "y"')}\n[[omnisharded_tables]]\ntables = ["t"]\ndatabase = "app" #`,
    ...{ sql: 'table t', with: 'any', without: needs('omnisharded_tables', 'database') },
  },
  {
    key: 'omnisharded_tables.tables',
    toml: `${schema('database = "app"\nshard = 1', 'name = "y"')}\n[[omnisharded_tables]]\ndatabase = "app"\ntables = ["t"] #`,
    ...{ sql: 'table t', with: 'any', without: needs('omnisharded_tables', 'tables') },
  },
  {
    key: 'function_routes.database',
    toml: '[[function_routes]]\nfunction = "f"\nshard = 2\ndatabase = "app" #',
    ...{ sql: 'select f(7)', with: 'relay 2', without: needs('function_routes', 'database') },
  },
  {
    key: 'function_routes.function',
    toml: '[[function_routes]]\ndatabase = "app"\nshard = 2\nfunction = "f" #',
    ...{ sql: 'select f(7)', with: 'relay 2', without: needs('function_routes', 'function') },
  },
  {
    key: 'function_routes.shard',
    toml: func('shard = 2 #'),
    ...{ sql: 'select f(7)', with: 'relay 2', without: /exactly one of shard/ },
  },
  {
    key: 'function_routes.group',
    toml: `${groups}${func('group = "g" #')}`,
    ...{ sql: 'select f(7)', with: 'relay 2', without: /exactly one of shard/ },
  },
  {
    key: 'function_routes.hash_argument',
    toml: func('hash_argument = 1 #'),
    ...{ sql: 'select f(7)', with: HASHED, without: /exactly one of shard/ },
  },
  {
    key: 'function_routes.hash_type',
    toml: func('hash_argument = 1\nhash_type = "text" #'),
    ...{ sql: "select f('7')", with: 'relay 0', without: HASHED },
  },
  {
    key: 'ha_groups.database',
    toml: `${groups.replace('database = "app"', 'database = "app" #').replace('shard = 2', '')}${func('group = "g"')}`,
    ...{ sql: 'select f(7)', with: 'relay 0', without: 'ROUTE_UNSUPPORTED' },
  },
  {
    key: 'ha_groups.shard',
    toml: `${groups.replace('shard = 2', 'shard = 2 #')}${func('group = "g"')}`,
    ...{ sql: 'select f(7)', with: 'relay 2', without: 'relay 0' },
  },
  {
    key: 'general.gather_functions',
    toml: `[general]\ngather_functions = ["f"] #\n${table}`,
    ...{ sql: 'select f(a.k) from t a join t b on a.v = b.v', with: 'gather 0,1,2,3' },
    without: 'ROUTE_UNSUPPORTED',
  },
  {
    key: 'general.cross_shard_gather',
    toml: `[general]\ncross_shard_gather = "off" #\n${table}`,
    ...{ sql: 'select 1 from t a join t b on a.v = b.v', with: 'ROUTE_UNSUPPORTED' },
    without: 'gather 0,1,2,3',
  },
]

test.each(cases)('$key moves a statement', async ({ key, toml, sql, ...expected }) => {
  const without = toml.replace(/^.*#$/gm, '')
  expect(without).not.toBe(toml)
  expect(toml.match(/(\w+) = .*#$/m)?.[1], 'the line of the key').toBe(key.split('.').at(-1))
  const check = (route: string, wanted: string | RegExp) =>
    typeof wanted === 'string' ? expect(route).toBe(wanted) : expect(route).toMatch(wanted)
  check(await routeOf(toml, sql), expected.with)
  check(await routeOf(without, sql), expected.without)
})

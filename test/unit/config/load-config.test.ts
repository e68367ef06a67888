/** What comes out of whole configurations: values, defaults, warnings, environment, URLs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load-config.js'
import { app, dir, load, markedLine, problems, shop, twoShards } from './config-files.js'

describe('what a PgDog file gives', () => {
  test('D9: defaults are those of PgDog when a file is read', () => {
    const { general } = load(shop)
    expect(general).toMatchObject({
      host: '0.0.0.0',
      port: 6432,
      defaultPoolSize: 10,
      minPoolSize: 1,
      poolerMode: 'transaction',
      idleTimeoutMs: 60_000,
      checkoutTimeoutMs: 5_000,
      queryTimeoutMs: Number.POSITIVE_INFINITY,
      loadBalancingStrategy: 'random',
      readWriteSplit: 'include_primary',
      authType: 'scram',
      tlsVerify: 'prefer',
      shutdownTerminationTimeoutMs: undefined,
      crossShardWrites: undefined,
      pipelineDepth: 16,
      pipelineStallMs: 20,
      gatherMaxBytes: 1_073_741_824,
    })
  })

  test('D9: databases and users come from TOML, and all that is wrong there is named at once', () => {
    const { databases, users } = load(twoShards)
    expect(databases.map(({ name, shards }) => [name, shards.length])).toEqual([['shop', 2]])
    expect(users).toMatchObject([{ name: 'app', databases: ['shop'], passwords: ['secret'] }])
    const wrong = `[general]\nport = "six"\ndefault_pol_size = 5\n${shop}role = "leader"\n`
    const user = '[[users]]\nname = "app"\ndatabase = "shop"\npasword = "secret"\n'
    const found = problems(wrong, user)
    expect(found.map((line) => /^\S+(?=:)/.exec(line)?.[0])).toEqual([
      'pgdog.toml:2',
      'pgdog.toml:3',
      'pgdog.toml:8',
      'users.toml:4',
    ])
  })

  test('D196: the sharded fixture gives its topology, sharding, users and console', () => {
    const config = loadConfig({
      configPath: 'fixtures/config/sharded.toml',
      usersPath: 'fixtures/config/users.toml',
      env: {},
    })
    expect(config.general.queryTimeoutMs).toBe(Number.POSITIVE_INFINITY)
    expect(config.general.crossShardWrites).toBe('error')
    expect(config.databases).toEqual([
      {
        name: 'shop',
        shards: [
          {
            number: 0,
            hosts: [
              {
                host: '10.0.0.1',
                port: 5432,
                database: 'shop',
                role: 'primary',
                weight: 255,
                statementTimeoutMs: 5000,
              },
              {
                host: '10.0.0.2',
                port: 5432,
                database: 'shop',
                role: 'replica',
                weight: 100,
                poolSizeReplica: 40,
              },
            ],
          },
          {
            number: 1,
            hosts: [
              {
                host: '10.0.0.3',
                port: 5432,
                database: 'shop_1',
                role: 'primary',
                weight: 255,
                user: 'owner',
                password: 's3cret-of-host',
              },
            ],
          },
        ],
      },
    ])
    const sharding = config.sharding.get('shop')
    expect(
      sharding?.tables.map(({ name, keyType, placement }) => [name, keyType, placement.kind]),
    ).toEqual([
      ['orders', 'bigint', 'hash'],
      ['regions', 'varchar', 'list'],
      ['events', 'timestamptz', 'range'],
      ['tenants', 'integer', 'range'],
    ])
    expect(sharding?.tables[0]?.placement).toEqual({
      kind: 'hash',
      hasher: 'postgres',
      buckets: 4,
      bucketMap: [0, 1, 1, 0],
    })
    expect(sharding?.tables[3]?.placement).toEqual({
      kind: 'range',
      entries: [{ start: '1', end: '100', shard: 0 }],
      fallback: 1,
    })
    expect(sharding?.referenceTables).toEqual([
      { name: 'currencies' },
      { schema: 'geo', name: 'countries' },
    ])
    expect(sharding?.schemas).toEqual([{ name: 'archive', shard: 1 }])
    expect(sharding?.otherTables).toBe('reference')
    expect(config.databaseOptions.get('shop')?.stickyTables).toEqual([
      'currencies',
      'geo.countries',
    ])
    expect(config.admin).toEqual({
      names: ['console', 'pgdog', 'pgshard', 'pgbouncer'],
      user: 'admin',
      password: 's3cret-of-console',
    })
    expect(config.users).toMatchObject([
      {
        name: 'app',
        databases: ['shop'],
        passwords: ['s3cret-of-app'],
        poolSize: 5,
        crossShardWrites: 'error',
      },
      {
        name: 'report',
        databases: ['shop'],
        passwords: [],
        serverPassword: 's3cret-of-report',
        readOnly: true,
        crossShardWrites: 'two_phase',
      },
    ])
  })

  test('buckets default to the number of shards, each bucket on its own', () => {
    const config = load(`${twoShards}
[[sharded_tables]]
database = "shop"
column = "id"
`)
    expect(config.sharding.get('shop')?.tables).toEqual([
      {
        column: 'id',
        keyType: 'bigint',
        placement: { kind: 'hash', hasher: 'postgres', buckets: 2, bucketMap: [0, 1] },
      },
    ])
  })

  test('of one shard every other table lies on shard 0', () => {
    expect(load(shop).sharding.get('shop')?.otherTables).toEqual({ shard: 0 })
  })

  test('a console name that is a database is left to the database', () => {
    const config = load(shop.replace('"shop"', '"pgdog"'), app.replace('"shop"', '"pgdog"'))
    expect(config.admin.names).toEqual(['admin', 'pgshard', 'pgbouncer'])
  })
})

test('a secret is in nothing shown', () => {
  const { shown } = load(`${shop}password = "hush-1"\n`, app.replace('secret', 'hush-2'))
  expect(JSON.stringify(shown)).not.toContain('hush')
  expect(JSON.stringify(shown)).toContain('(hidden)')
})

test('a file that was named must be there', () => {
  expect(() => loadConfig({ configPath: join(dir, 'none.toml'), env: {} })).toThrowError(
    expect.objectContaining({ code: 'FILE_MISSING', exitCode: 3 }),
  )
})

describe('warnings', () => {
  const warnings = (config: string, users = app) =>
    load(config, users).warnings.map((line) => line.replaceAll(`${dir}/`, ''))

  test('a key without effect is named when it was written, and not else', () => {
    expect(warnings(shop)).toEqual([])
    const key = 'unique_id_min'
    expect(warnings(`[general]\n${key} = 5\n${shop}`)).toEqual([
      `pgdog.toml:2: ${key} is not used: pgshard.unique_id() is a function of each shard, made by setup`,
    ])
  })

  test('sections in which PgDog ignores unknown keys', () => {
    const table = '[[omnisharded_tables]]\ndatabase = "shop"\ntables = ["a"]\nstiky = true #!\n'
    const config = `${twoShards}\n${table}`
    expect(warnings(config)).toContain(
      `pgdog.toml:${markedLine(config)}: unknown key "stiky" in [[omnisharded_tables]]; did you mean "sticky"? (ignored, as PgDog does)`,
    )
  })

  test('who cannot get in', () => {
    expect(warnings(shop, '')).toEqual(['database "shop" has no user; nobody can connect to it'])
    expect(warnings(shop, '[[users]]\nname = "a"\ndatabase = "shop"\n')).toEqual([
      'users.toml:1: user "a" has no password and cannot log in',
    ])
    expect(warnings(shop, `${app}databases = ["shpo"]\n`)).toEqual([
      'users.toml:6: user "app": there is no database "shpo"; did you mean "shop"?',
    ])
  })

  test('shards without a sharded table', () => {
    expect(warnings(twoShards)).toEqual([
      'database "shop" has 2 shards and no sharded table: every table counts as a reference table',
    ])
  })
})

describe('environment and URLs', () => {
  test('D17: the file wins over the environment, the environment over the default; odd names too', () => {
    const env = {
      PGDOG_PORT: '7000',
      PGDOG_DEFAULT_POOL_SIZE: '33',
      PGDOG_CLIENT_LOG_TIMEOUT: '9',
      RUST_LOG: 'debug,x=trace',
      PGDOG_TLS_VERIFY: 'verify-CA',
    }
    const { general, shown } = load(`[general]\nport = 7001\n${shop}`, app, env)
    expect(general).toMatchObject({
      port: 7001,
      defaultPoolSize: 33,
      clientLoginTimeoutMs: 9,
      logLevel: 'debug',
      tlsVerify: 'verify_ca',
    })
    const keys = shown.find(({ section }) => section === 'general')?.keys
    expect(keys?.find(({ key }) => key === 'default_pool_size')?.source).toBe(
      'environment PGDOG_DEFAULT_POOL_SIZE',
    )
  })

  test('a key without a variable has none', () => {
    expect(
      load(shop, app, { PGDOG_TWO_PHASE_COMMIT: 'true' }).general.twoPhaseCommit,
    ).toBeUndefined()
  })

  test('a wrong variable is named', () => {
    expect(problems(shop, app, { PGDOG_PORT: 'x' })).toEqual([
      'environment PGDOG_PORT: PGDOG_PORT must be a whole number from 0 to 65535, not "x"',
    ])
  })

  test('D17: URLs make databases and users, with our own defaults', () => {
    const config = loadConfig({
      databaseUrls: [
        'postgres://app:pw%40@127.0.0.1:5440/shop?shard=0&database_name=shop_0&pool_size=7',
        'postgresql://app:pw%40@[::1]:5441/shop?shard=1&role=replica&read_only=true',
      ],
      env: { PGDOG_DATABASE_URL_1: 'postgres://app:pw%40@c/shop?shard=1&role=primary' },
    })
    expect(config.databases[0]?.shards.map(({ hosts }) => hosts)).toMatchObject([
      [{ host: '127.0.0.1', port: 5440, database: 'shop_0', poolSize: 7 }],
      [
        { host: '::1', port: 5441, role: 'replica', readOnly: true },
        { host: 'c', port: 5432, role: 'primary' },
      ],
    ])
    expect(config.users).toMatchObject([{ name: 'app', passwords: ['pw@'], databases: ['shop'] }])
    expect(config.general).toMatchObject({
      host: '127.0.0.1',
      loadBalancingStrategy: 'round_robin',
      readWriteSplit: 'exclude_primary',
    })
  })

  test('URLs of one user with different passwords keep theirs', () => {
    const config = loadConfig({
      databaseUrls: ['postgres://a:one@h0/d?shard=0', 'postgres://a:two@h1/d?shard=1'],
      env: {},
    })
    expect(config.users).toMatchObject([{ name: 'a', passwords: ['one'] }])
    expect(config.databases[0]?.shards.map(({ hosts }) => hosts[0]?.password)).toEqual([
      'one',
      'two',
    ])
  })

  test('a wrong URL is an error that does not repeat it', () => {
    const wrong = () =>
      loadConfig({ databaseUrls: ['http://a:hush@h/d', 'postgres://a:hush@h/d?rol=x'], env: {} })
    expect(wrong).toThrowError(
      expect.objectContaining({
        detail:
          '--database-url 1: expected postgres://user:password@host:port/database\n--database-url 2: unknown parameter "rol"; did you mean "role"?',
      }),
    )
  })

  test.each([
    ['PGDOG_MIRRORING_1', 'source_db=shop&destination_db=copy', 'mirroring is not supported yet'],
    ['PGDOG_DRY_RUN', 'true', 'dry_run is not supported yet'],
  ])('what is refused in a file is refused from the environment: %s', (name, text, message) => {
    expect(() => load(shop, app, { [name]: text })).toThrowError(
      expect.objectContaining({
        detail: expect.stringContaining(`environment ${name}: ${message}`),
      }),
    )
  })

  test('nothing at all is an error of its own', () => {
    const usersPath = join(dir, 'only-users.toml')
    writeFileSync(usersPath, '')
    expect(() => loadConfig({ usersPath, databaseUrls: [], env: {} })).toThrowError(
      expect.objectContaining({ code: 'CONFIG_NO_DATABASE' }),
    )
  })
})

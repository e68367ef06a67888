/** Every mistake is named with its place; `#!` marks the line that must be named. */
import { describe, expect, test } from 'vitest'
import { app, markedLine, problems, shop, twoShards } from './config-files.js'

const tls = 'tls_certificate and tls_private_key'

describe('pgdog.toml', () => {
  test.each<[string, string, string]>([
    [
      'unknown key',
      `[general]\nprot = 1 #!\n${shop}`,
      'unknown key "prot" in [general]; did you mean "port"?',
    ],
    [
      'unknown section',
      `[genral] #!\nport = 1\n${shop}`,
      'unknown section "genral"; did you mean "general"?',
    ],
    [
      'wrong type',
      `[general]\nport = "x" #!\n${shop}`,
      'port must be a whole number from 0 to 65535, not "x"',
    ],
    [
      'unknown word',
      `[general]\ntls_verify = "verify-ca" #!\n${shop}`,
      'tls_verify must be one of disabled, prefer, verify_ca, verify_full, not "verify-ca"; did you mean "verify_ca"?',
    ],
    ['table for list', `[databases] #!\nname = "x"\n`, 'write [[databases]]'],
    ['wrong file', `${shop}\n[[users]] #!\nname = "x"\n`, '[[users]] belongs in users.toml'],
    [
      'missing key',
      `${shop}\n[[databases]] #!\nname = "shop"\n`,
      '[[databases]] needs the key "host"',
    ],
    [
      'alias twice',
      `${shop}pool_size = 1\nmax_pool_size = 2 #!\n`,
      'max_pool_size and pool_size (pgdog.toml:5) are one key; keep one',
    ],
    [
      'host twice',
      twoShards.replace('0.2"', '0.1" #!'),
      'database "shop" has the host 10.0.0.1:5432/shop twice (also pgdog.toml:2); rows would be read twice',
    ],
    [
      'parser off',
      `[general]\nquery_parser = "off" #!\n${twoShards}`,
      'query_parser = "off" cannot serve database "shop", which has 2 shards',
    ],
    [
      'parser off for one database',
      `${twoShards}\n[[query_parsers]]\ndatabase = "shop"\nlevel = "session_control" #!\n`,
      'query_parser = "session_control" cannot serve database "shop", which has 2 shards',
    ],
    [
      'shard left out',
      twoShards.replace('shard = 1', 'shard = 3 #!'),
      'database "shop" has a shard 3 but no shard 1, 2; shards are numbered from 0 without gaps',
    ],
    [
      'two primaries',
      `${shop}\n[[databases]]\nname = "shop"\nhost = "h"\nrole = "primary" #!\n`,
      'shard 0 of database "shop" has two primaries',
    ],
    [
      'key without certificate',
      `[general]\ntls_private_key = "package.json" #!\n${shop}`,
      'tls_private_key needs tls_certificate',
    ],
    [
      'file that is not there',
      `[general]\ntls_private_key = "package.json"\ntls_certificate = "no.pem" #!\n${shop}`,
      'tls_certificate: could not read "no.pem"',
    ],
    [
      'TLS demanded, none there',
      `[general]\ntls_client_required = true #!\n${shop}`,
      `tls_client_required needs ${tls}`,
    ],
    [
      'direct TLS without TLS',
      `[general]\ntls_server_negotiation = "direct" #!\n${shop}`,
      'tls_server_negotiation = "direct" needs tls_verify = "verify_ca" or "verify_full"',
    ],
    [
      'rules that cannot be kept',
      `[general]\nhba = ["host all all all scram-sha-256", "host all +staff all ldap"] #!\n${shop}`,
      'hba, rule 2: +staff: membership in roles is not known here; name the users',
    ],
    [
      'rows left behind',
      `${shop}\n[rewrite]\nshard_key = "ignore" #!\n`,
      'rewrite.shard_key = "ignore" would leave rows on the wrong shard; use "rewrite" or "error"',
    ],
    [
      'a token that can be guessed',
      `[general]\nweb_token = "short" #!\n${shop}`,
      'web_token must have at least 16 characters',
    ],
    [
      'two words for commits',
      `[general]\ntwo_phase_commit = false\ncross_shard_writes = "two_phase" #!\n${shop}`,
      'cross_shard_writes = "two_phase" contradicts two_phase_commit = false',
    ],
    [
      'console in the way of a database',
      `${shop}\n[admin]\nname = "shop" #!\n`,
      'admin.name "shop" is the name of a database too',
    ],
    ['dry run', `[general]\ndry_run = true #!\n${shop}`, 'dry_run is not supported yet'],
    [
      'guard that does not guard',
      `${shop}\n[multi_tenant]\ncolumn = "t" #!\n`,
      'multi_tenant.column is not supported yet',
    ],
    [
      'log level',
      `[general]\nlog_level = "loud" #!\n${shop}`,
      'log_level must be one of trace, debug, info, warn, error, off, not "loud"',
    ],
    [
      'secret of the wrong type is not repeated',
      `${shop}password = 12345 #!\n`,
      'password must be text in quotes, not the value given',
    ],
    [
      'sharded table of an unknown database',
      `${twoShards}\n[[sharded_tables]]\ndatabase = "shopp" #!\ncolumn = "id"\n`,
      'there is no database "shopp"; did you mean "shop"?',
    ],
    [
      'mapping that no table claims',
      `${twoShards}\n[[sharded_mappings]] #!\ndatabase = "shop"\ncolumn = "id"\nshard = 1\n`,
      'no [[sharded_tables]] entry has this database, table and column',
    ],
  ])('%s', (_, config, expected) => {
    expect(problems(config)).toEqual([`pgdog.toml:${markedLine(config)}: ${expected}`])
  })
})

const noShard2 = 'there is no shard 2: the database has 2 shards, 0 to 1'

describe('sharded tables', () => {
  test.each<[string, string, string]>([
    ['shard too high', 'buckets = 2\nbucket_map = [0, 2] #!', noShard2],
    [
      'map too short',
      'buckets = 4\nbucket_map = [0, 1] #!',
      'bucket_map has 2 entries for 4 buckets',
    ],
    ['too few buckets', 'buckets = 1 #!', '1 buckets for 2 shards: some would stay empty'],
    [
      'overlap',
      'mapping = [{ start = 1, end = 10, shard = 0 }, { start = 9, shard = 1 }] #!',
      'range [9, open) overlaps [1, 10) at pgdog.toml:15',
    ],
    [
      'value on two shards',
      'mapping = [{ values = [1, 2], shard = 0 }, { values = ["+2"], shard = 1 }] #!',
      'value "+2" is on shard 1 here and on shard 0 at pgdog.toml:15',
    ],
    ['empty range', 'mapping = [{ start = 10, end = 9, shard = 0 }] #!', 'range [10, 9) is empty'],
    ['shard of a mapping', 'mapping = [{ values = [1], shard = 2 }] #!', noShard2],
    [
      'two fallbacks',
      'mapping = [{ values = [1], shard = 0 }, { shard = 0 }, { shard = 1 }] #!',
      'a mapping has one entry with a shard only; this is the second',
    ],
    ['no number', 'mapping = [{ values = ["x"], shard = 0 }] #!', '"x" is not a bigint'],
    [
      'number too great',
      'data_type = "smallint"\nmapping = [{ values = [32768], shard = 0 }] #!',
      '"32768" is not a smallint',
    ],
    [
      'instant without a zone',
      'data_type = "timestamptz"\nmapping = [{ start = "2024-01-01", shard = 0 }] #!',
      '"2024-01-01" is not a timestamptz (write 2024-01-31 12:00:00+00, with a zone)',
    ],
    [
      'buckets beside a mapping',
      'mapping = [{ values = [1], shard = 0 }]\nbuckets = 2 #!',
      'buckets has no meaning beside a mapping',
    ],
    [
      'lookup',
      'lookup_query = "select 1" #!',
      'sharded_tables.lookup_query is not supported yet: rows would be misplaced when its answer changes; use sharded_mappings',
    ],
    ['vector', 'data_type = "vector" #!', 'a vector key needs centroids'],
    [
      'centroids of a number',
      'centroids = [[1.0], [2.0]] #!',
      'centroids needs data_type = "vector"',
    ],
    [
      'centroids of two lengths',
      'data_type = "vector"\ncentroids = [[1.0, 2.0], [2.0]] #!',
      'centroid 1 has 1 dimensions, the first 2',
    ],
    [
      'a mapped vector',
      'centroids = [[1.0]]\nmapping = [{ shard = 0 }]\ndata_type = "vector" #!',
      'a vector key has centroids, not a mapping',
    ],
    [
      'sha1 of a date',
      'data_type = "date"\nhasher = "sha1" #!',
      'hasher sha1 takes bigint, uuid and varchar, not date',
    ],
  ])('%s', (_, keys, expected) => {
    const table = '[[sharded_tables]]\ndatabase = "shop"\ncolumn = "id"\n'
    const config = `${twoShards}\n${table}${keys}\n`
    expect(problems(config)).toEqual([`pgdog.toml:${markedLine(config)}: ${expected}`])
  })

  test('ranges that touch do not overlap, whatever their order', () => {
    const mapping =
      'mapping = [{ start = 10, shard = 1 }, { end = "5", shard = 1 }, { start = 5, end = 10, shard = 0 }]'
    const table = `[[sharded_tables]]\ndatabase = "shop"\ncolumn = "id"\n${mapping}\n`
    expect(problems(`${twoShards}\n${table}`)).toEqual([])
  })
})

describe('users.toml and both', () => {
  test.each<[string, string, string]>([
    [
      'one user twice',
      `${app}\n[[users]] #!\nname = "app"\nall_databases = true\n`,
      'user "app" of database "shop" stands here and at users.toml:2',
    ],
    [
      'a verifier that is none',
      '[[users]]\nname = "a"\ndatabase = "shop"\npassword_hash = "md5abc" #!\n',
      'user "a": password_hash is not a SCRAM-SHA-256 verifier; make one with pgshard hash-password',
    ],
    [
      'Vault without a path',
      `${app}server_auth = "vault_static" #!\n`,
      'server_auth "vault_static" of user "app" needs server_vault_path',
    ],
  ])('%s', (_, users, expected) => {
    expect(problems(`${shop}\n[vault]\nurl = "http://127.0.0.1:1"\n`, users)).toEqual([
      `users.toml:${markedLine(users)}: ${expected}`,
    ])
  })

  test('external identity without TLS, or with passthrough', () => {
    const general = '[general]\ntls_verify = "disabled"\npassthrough_auth = "enabled_plain"\n'
    const users = `${app}server_auth = "rds_iam" #!\n`
    const at = `users.toml:${markedLine(users)}: server_auth "rds_iam" of user "app"`
    expect(problems(`${general}${shop}`, users)).toEqual([
      `${at} needs passthrough_auth = "disabled"`,
      `${at} needs TLS to the servers: set tls_verify`,
    ])
  })

  test('passwords in clear', () => {
    const clear =
      'pgdog.toml:2: passthrough_auth = "enabled" needs tls_certificate, because clients send their passwords in clear'
    expect(problems(`[general]\npassthrough_auth = "enabled"\n${shop}`)).toContain(clear)
    expect(problems(`[general]\npassthrough_auth = "enabled_plain"\n${shop}`)).not.toContain(clear)
  })

  test('D111: all of them at once, by file and line; a gap in the shards too', () => {
    const found = problems(
      `[general]\nprot = 1\nhost = 5\n${twoShards.replace('shard = 1', 'shard = 2')}`,
      '[[users]]\nname = "a"\npasword = "x"\n',
    )
    expect(found).toEqual([
      'pgdog.toml:2: unknown key "prot" in [general]; did you mean "port"?',
      'pgdog.toml:3: host must be text in quotes, not 5',
      'pgdog.toml:13: database "shop" has a shard 2 but no shard 1; shards are numbered from 0 without gaps',
      'users.toml:3: unknown key "pasword" in [[users]]; did you mean "password"?',
    ])
  })

  test('a syntax error has its line, and the other file is still read', () => {
    const found = problems('[general]\nport = = 1\n', '[[users]]\nnme = "a"\n')
    expect(found[0]).toMatch(/^pgdog\.toml:2: syntax error: /)
    expect(found).toContain('users.toml:2: unknown key "nme" in [[users]]; did you mean "name"?')
  })
})

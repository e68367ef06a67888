/** pgbouncer.ini → pgdog.toml and users.toml: what each setting becomes, and that nothing is dropped in silence. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load-config.js'
import { importPgbouncer } from '../../../src/config/pgbouncer/import-pgbouncer.js'
import { settingMap, userSettings } from '../../../src/config/pgbouncer/setting-map.js'
import { projectRoot } from '../../support/run-cli.js'

const fixture = join(projectRoot, 'fixtures/config/pgbouncer')

function fileOf(text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'import-'))
  writeFileSync(join(directory, 'pgbouncer.ini'), text)
  return join(directory, 'pgbouncer.ini')
}

const generalOf = (settings: string) => {
  const path = fileOf(`[databases]\nx = host=a\n[pgbouncer]\n${settings}\n`)
  const { pgdogToml, notes } = importPgbouncer(path, '/')
  return { general: parse(pgdogToml)['general'] as Record<string, unknown>, notes }
}

describe('config import', () => {
  const imported = importPgbouncer(join(fixture, 'pgbouncer.ini'), fixture)

  it('reads a file that begins with a byte order mark and ends lines as Windows does', () => {
    const path = fileOf('\ufeff[databases]\r\nx = host=a\r\n[pgbouncer]\r\nlisten_port = 7000\r\n')
    const { pgdogToml } = importPgbouncer(path, '/')
    const { databases, general } = parse(pgdogToml) as Record<string, Record<string, unknown>>
    expect(databases).toMatchObject([{ name: 'x', host: 'a' }])
    expect(general).toMatchObject({ port: 7000 })
  })

  it('notes numbers that are none, and writes a file that can be read', () => {
    const entries =
      '[databases]\nx = host=a port=abc pool_size=many\n[users]\nbob = pool_size=few\n'
    const { pgdogToml, usersToml, notes } = importPgbouncer(fileOf(`${entries}[pgbouncer]\n`), '/')
    expect(parse(pgdogToml)['databases']).toEqual([{ name: 'x', host: 'a', port: 5432 }])
    expect(parse(usersToml)['users']).toEqual([{ name: 'bob', all_databases: true }])
    expect(notes.map(({ setting, reason }) => `${setting}: ${reason}`)).toEqual([
      'x.pool_size: "many" is not a number',
      'x.port: "abc" is not a number',
      'bob.pool_size: "few" is not a number',
    ])
  })

  it('says of a file that is not there what people say', () => {
    const path = fileOf('[databases]\nx = host=a\n[pgbouncer]\nauth_file = nothere.txt\n')
    expect(() => importPgbouncer(path, '/nowhere')).toThrow(
      'could not open file "/nowhere/nothere.txt": no such file or directory',
    )
  })

  it('takes databases with quotes, includes, several hosts and ports', () => {
    const { databases } = parse(imported.pgdogToml)
    expect(databases).toEqual([
      {
        name: 'shop',
        host: 'db1',
        port: 5432,
        role: 'auto',
        pooler_mode: 'statement',
        min_pool_size: 2,
      },
      {
        name: 'shop',
        host: 'db2',
        port: 5433,
        role: 'auto',
        pooler_mode: 'statement',
        min_pool_size: 2,
      },
      { name: 'local', host: '/var/run/postgresql', port: 5432, database_name: 'shop' },
      {
        name: 'forced',
        host: '10.0.0.9',
        port: 6543,
        database_name: 'bar',
        user: 'baz',
        password: "it's a = secret",
        pool_size: 7,
      },
      { name: 'odd "name"', host: '127.0.0.1', port: 5432 },
    ])
  })

  it('takes settings, their units and their last value, and writes the defaults that differ', () => {
    expect(parse(imported.pgdogToml)['general']).toMatchObject({
      host: '127.0.0.1',
      port: 5999,
      pooler_mode: 'transaction',
      default_pool_size: 35,
      max_client_conn: 5000,
      reserve_pool_timeout: 3500,
      idle_timeout: 300_000,
      client_idle_in_transaction_timeout: 90_000,
      log_connections: false,
      tls_client_required: true,
      tls_verify: 'prefer',
      prepared_statements_limit: 200,
      auth_type: 'scram',
      // Not written there: PgBouncer's defaults.
      min_pool_size: 0,
      connect_timeout: 15_000,
      client_login_timeout: 60_000,
    })
    expect(generalOf('').general).toMatchObject({
      pooler_mode: 'session',
      max_client_conn: 100,
      auth_type: 'md5',
    })
  })

  it('takes users with passwords and verifiers, the one that looks others up, and the console', () => {
    const { users, admin } = parse(imported.usersToml)
    expect(users).toMatchObject([
      { name: 'app', all_databases: true, password: 'app secret "quoted"' },
      { name: 'ops', password: 'console' },
      { name: 'report', password_hash: expect.stringMatching(/^SCRAM/), pooler_mode: 'session' },
      { name: 'old' },
      { name: 'lookup', auth_query: 'SELECT usename, passwd FROM pg_shadow WHERE usename=$1' },
    ])
    expect(admin).toEqual({ name: 'pgbouncer', user: 'ops', password: 'console' })
  })

  it('names what it does not take over, with its place', () => {
    const named = new Map(imported.notes.map(({ setting, place }) => [setting, place]))
    for (const setting of [
      '*',
      'forced.reserve_pool_size',
      'odd "name".connect_query',
      'odd "name".timezone',
      'local.host',
      'shop.host',
      'report.max_user_connections',
      'report',
      'old',
      'listen_addr',
      'logfile',
      'pidfile',
      'query_wait_timeout',
      'ignore_startup_parameters',
      'server_reset_query',
      'admin_users',
      'stats_users',
      'server_tls_sslmode',
      'made_up_setting',
    ])
      expect(named.has(setting), setting).toBe(true)
    expect(named.get('made_up_setting')).toBe(`${join(fixture, 'pgbouncer.ini')}:42`)
    expect(named.get('shop.host')).toBe(`${join(fixture, 'conf.d/databases.ini')}:2`)
    expect(imported.notes.every(({ reason }) => reason.length > 5)).toBe(true)
  })

  it('makes files that config check takes', () => {
    const directory = mkdtempSync(join(tmpdir(), 'import-'))
    writeFileSync(join(directory, 'pgdog.toml'), imported.pgdogToml)
    writeFileSync(join(directory, 'users.toml'), imported.usersToml)
    const config = loadConfig({
      configPath: join(directory, 'pgdog.toml'),
      databaseUrls: [],
      env: {},
    })
    expect(config.databases.map(({ name }) => name)).toEqual([
      'shop',
      'local',
      'forced',
      'odd "name"',
    ])
    const warned = config.warnings.filter((text) => !/server_password|cannot log in/.test(text))
    expect(warned.filter((text) => !/no effect/.test(text))).toEqual([])
  })

  it.each([
    ['query_timeout = 0', {}],
    ['query_timeout = 2.5', { query_timeout: 2500 }],
    ['max_db_connections = 0', {}],
    ['client_tls_protocols = tlsv1.3', { tls_min_version: 'TLSv1.3' }],
    ['server_tls_sslmode = verify-full', { tls_verify: 'verify_full' }],
    ['listen_addr = *', { host: '0.0.0.0' }],
    ['auth_type = hba\nauth_hba_file = /etc/hba.conf', { hba_file: '/etc/hba.conf' }],
    ['client_tls_ca_file = ca.crt', { tls_client_ca_certificate: '/ca.crt' }],
  ])('maps %s', (setting, keys) => {
    const { general } = generalOf(setting)
    expect(general).toMatchObject(keys)
    if (Object.keys(keys).length === 0) expect(general).not.toHaveProperty(setting.split(' ')[0]!)
  })

  it.each(['default_pool_size = many', 'auth_type = kerberos', 'client_tls_sslmode = sometimes'])(
    'names a value that it cannot read: %s',
    (setting) =>
      expect(generalOf(setting).notes.map((one) => one.setting)).toContain(setting.split(' ')[0]),
  )

  it.each([
    ['loose line', 'before\n[databases]\n'],
    ['bad pairs', "[databases]\nx = host=a 'open\n"],
    ['includes without end', '[databases]\n%include pgbouncer.ini\n'],
  ])('refuses %s', (_, text) => {
    const path = fileOf(text)
    expect(() => importPgbouncer(path, join(path, '..'))).toThrow(/pgbouncer\.ini/)
  })

  it('knows every setting of PgBouncer 1.18 (SHOW CONFIG) and of its example file', () => {
    const known = (name: string) => name in settingMap || userSettings.has(name)
    expect(settingsOf118.split(' ').filter((name) => !known(name))).toEqual([])
  })
})

const settingsOf118 =
  'admin_users application_name_add_host auth_file auth_hba_file auth_query auth_type auth_user autodb_idle_timeout cancel_wait_timeout client_idle_timeout client_login_timeout client_tls_ca_file client_tls_cert_file client_tls_ciphers client_tls_dheparams client_tls_ecdhcurve client_tls_key_file client_tls_protocols client_tls_sslmode conffile default_pool_size disable_pqexec dns_max_ttl dns_nxdomain_ttl dns_zone_check_period idle_transaction_timeout ignore_startup_parameters job_name listen_addr listen_backlog listen_port log_connections log_disconnections log_pooler_errors log_stats logfile max_client_conn max_db_connections max_packet_size max_user_connections min_pool_size peer_id pidfile pkt_buf pool_mode query_timeout query_wait_notify query_wait_timeout reserve_pool_size reserve_pool_timeout resolv_conf sbuf_loopcnt server_check_delay server_check_query server_connect_timeout server_fast_close server_idle_timeout server_lifetime server_login_retry server_reset_query server_reset_query_always server_round_robin server_tls_ca_file server_tls_cert_file server_tls_ciphers server_tls_key_file server_tls_protocols server_tls_sslmode service_name so_reuseport stats_period stats_users suspend_timeout syslog syslog_facility syslog_ident tcp_defer_accept tcp_keepalive tcp_keepcnt tcp_keepidle tcp_keepintvl tcp_socket_buffer tcp_user_timeout track_extra_parameters unix_socket_dir unix_socket_group unix_socket_mode user verbose'

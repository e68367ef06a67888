/** A real PL/Proxy node that follows HA groups: what `ha init` makes, and what `ha switch` and `ha watch` do to its calls. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { type CliProgram, runCli, startCli } from '../../support/run-cli.js'
import { isFileMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const isPlproxyMissing = isFileMissing('/usr/lib/postgresql/15/lib/plproxy.so')

describe.skipIf(isPlproxyMissing)('a PL/Proxy node and two HA groups', () => {
  // server 0 has the state and group 2, servers 1 and 2 are primary and standby of group 1
  const postgres = usePostgres({ version: 15, count: 3, own: true })
  let configPath: string
  let proxy: pg.Client
  let config: string
  const watching: CliProgram[] = []

  const nodes = [
    { server: 1, database: 'db01' },
    { server: 2, database: 'db01' },
    { server: 0, database: 'db01' },
    { server: 0, database: 'db02' },
  ]
  const nodeUrl = (hostId: number) => {
    const { server, database } = nodes[hostId]!
    return postgres().url(server, database)
  }
  const ha = (...args: string[]) => runCli(['ha', ...args, '--config', configPath])

  async function onNode(hostId: number, sql: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: nodeUrl(hostId) })
    await client.connect()
    try {
      return (await client.query(sql)).rows as Record<string, unknown>[]
    } finally {
      await client.end()
    }
  }

  beforeAll(async () => {
    for (const { server, database } of nodes)
      await postgres().query(`create database ${database}`, [], server)
    const directory = mkdtempSync(join(inject('runDirectory'), 'ha-'))
    configPath = join(directory, 'pgdog.toml')
    const group = (name: string, primary: number, standby: number) =>
      `[[ha_groups]]\nname = "${name}"\nprimary = "${nodeUrl(primary)}"\nstandby = "${nodeUrl(standby)}"\nheartbeat_interval = 300\nswitch_after = 8000`
    const route = (name: string, of: string) =>
      `[[function_routes]]\ndatabase = "app"\nfunction = "${name}"\ngroup = "${of}"`
    const { host, port } = postgres().servers[0]!
    config = [
      `[[databases]]\nname = "app"\nhost = "${host}"\nport = ${port}\ndatabase_name = "${postgres().database}"`,
      `[ha]\nstate = "${postgres().url(0)}"\ncluster = "cluster01"\npassword = "beat"\nconnect_timeout = 1000`,
      group('one', 0, 1),
      group('two', 2, 3),
      route('get_username', 'one'),
      route('get_nodename', 'two'),
    ].join('\n\n')
    writeFileSync(configPath, config)
    const made = await ha('init')
    expect(made.stderr).toBe('')
    expect(made.code).toBe(0)
    for (const hostId of nodes.keys())
      await onNode(
        hostId,
        `create table myuser (id int primary key, username text);
         insert into myuser select n, 'user' || n from generate_series(1, 10000) n;
         create function get_username(i_id int) returns text language sql as 'select username from myuser where id = i_id';
         create function get_nodename() returns text language sql as $$ select 'node ${hostId}' $$`,
      )
    proxy = await postgres().connect(0)
    await proxy.query(`
      create extension plproxy;
      create function get_username(i_id int) returns text language plproxy as $$
        cluster 'cluster01'; run on public.plp_route_by_funcname('get_username'); $$;
      create function get_nodename() returns text language plproxy as $$
        cluster 'cluster01'; run on public.plp_route_by_funcname('get_nodename'); $$;
      create function get_nothing() returns text language plproxy as $$
        cluster 'cluster01'; run on public.plp_route_by_funcname('get_nothing'); $$`)
  })
  const endWatchers = async () => {
    for (const one of watching.splice(0)) {
      one.signal('SIGKILL')
      await one.ended
    }
  }
  afterAll(async () => {
    await endWatchers()
    await proxy?.end()
  })
  // whatever a test before left behind
  beforeEach(async () => {
    await endWatchers()
    writeFileSync(configPath, config)
    await postgres().query('update ha_config set current_hostid = primary_hostid')
  })

  const value = async (sql: string) =>
    Object.values((await proxy.query<Record<string, unknown>>(sql)).rows[0] ?? {})[0]

  it('X3, X4, X5, X6: the three functions that PL/Proxy asks', async () => {
    expect(await value("select plproxy.get_cluster_version('cluster01')")).toBe(1)
    await expect(proxy.query("select plproxy.get_cluster_version('other')")).rejects.toThrow(
      'no such cluster: other',
    )
    const config = await proxy.query("select * from plproxy.get_cluster_config('cluster01')")
    expect(config.rows).toEqual([{ key: 'statement_timeout', val: '60' }])
    const partitions = await proxy.query<{ node: string }>(
      "select * from plproxy.get_cluster_partitions('cluster01') as node",
    )
    expect(partitions.rows).toHaveLength(4)
    for (const [hostId, { node }] of partitions.rows.entries()) {
      const { server, database } = nodes[hostId]!
      expect(node).toMatch(
        new RegExp(
          `^dbname=${database} host=\\S+ port=${postgres().servers[server]!.port} user=postgres`,
        ),
      )
    }
    await expect(proxy.query("select plproxy.get_cluster_partitions('other')")).rejects.toThrow(
      'Unknown cluster',
    )
  })

  it('X7, X8, X9: ha_config and function_route', async () => {
    const columns = await proxy.query(
      "select column_name, data_type from information_schema.columns where table_name = 'ha_config' order by ordinal_position",
    )
    expect(columns.rows.map(({ column_name, data_type }) => `${column_name} ${data_type}`)).toEqual(
      [
        'ha_groupid integer',
        'primary_ip text',
        'standby_ip text',
        'primary_hostid integer',
        'standby_hostid integer',
        'current_hostid integer',
        'primary_hearttime timestamp without time zone',
        'standby_hearttime timestamp without time zone',
      ],
    )
    const { rows } = await proxy.query(
      'select ha_groupid, primary_ip, primary_hostid, standby_hostid, current_hostid from ha_config order by 1',
    )
    const [address] = [postgres().servers[0]!.host]
    expect(rows).toEqual([
      {
        ha_groupid: 1,
        primary_ip: address,
        primary_hostid: 0,
        standby_hostid: 1,
        current_hostid: 0,
      },
      {
        ha_groupid: 2,
        primary_ip: address,
        primary_hostid: 2,
        standby_hostid: 3,
        current_hostid: 2,
      },
    ])
    const routes = await proxy.query('select * from function_route order by 1')
    expect(routes.rows).toEqual([
      { funcname: 'get_nodename', ha_groupid: 2 },
      { funcname: 'get_username', ha_groupid: 1 },
    ])
  })

  it('X10, X16: rights of hauser, and one row in xdual of each node', async () => {
    for (const table of ['ha_config', 'function_route'])
      for (const right of ['select', 'insert', 'update', 'delete', 'truncate'])
        expect(await value(`select has_table_privilege('hauser', '${table}', '${right}')`)).toBe(
          true,
        )
    for (const hostId of nodes.keys())
      expect(
        await onNode(
          hostId,
          "select count(*)::int, bool_and(has_table_privilege('hauser', 'xdual', 'update')) as may from xdual",
        ),
      ).toEqual([{ count: 1, may: true }])
  })

  it('X1, X2, X11, X13, X14: functions run on the group that owns them', async () => {
    expect(await value("select plp_route_by_funcname('get_username')")).toBe(0)
    expect(await value('select get_username(5)')).toBe('user5')
    expect(await value('select get_nodename()')).toBe('node 2')
  })

  it('X12: a function without a route fails', async () => {
    expect(await value("select plp_route_by_funcname('get_nothing')")).toBeNull()
    await expect(proxy.query('select get_nothing()')).rejects.toThrow(/NULL/)
  })

  it('X15: a switch by hand redirects the next call of the same session', async () => {
    expect(await value('select get_nodename()')).toBe('node 2')
    const late = await ha('switch', 'two', '--to', 'standby', '--force', '--json')
    expect(late.code).toBe(0)
    expect(JSON.parse(late.stdout)).toMatchObject({ group: 'two', to: 'standby', changed: true })
    expect(await value('select get_nodename()')).toBe('node 3')
    expect((await ha('switch', 'two', '--to', 'standby')).stdout).toContain('already')
    const other = await ha('switch', 'three', '--to', 'primary')
    expect(other.code).toBe(2)
    expect(other.stderr).toContain('groups are: one, two')
  })

  it('a second init changes nothing that was switched, and the version grows with an address', async () => {
    const version = async () =>
      Number(await value("select plproxy.get_cluster_version('cluster01')"))
    await ha('init')
    const known = await version()
    await ha('switch', 'two', '--to', 'standby', '--force')
    expect((await ha('init')).code).toBe(0)
    expect(await value('select get_nodename()')).toBe('node 3')
    expect(await version()).toBe(known)
    writeFileSync(configPath, config.replace('/db02', '/db02?application_name=moved'))
    expect((await ha('init')).code).toBe(0)
    expect(await version()).toBe(known + 1)
    expect(await value('select get_nodename()')).toBe('node 3')
    writeFileSync(configPath, config)
    expect((await ha('init')).code).toBe(0)
  })

  it('X20: a delay that is not larger than the interval is refused', async () => {
    const wrong = `${configPath}.wrong.toml`
    writeFileSync(wrong, config.replace('switch_after = 8000', 'switch_after = 300'))
    const refused = await runCli(['ha', 'status', '--config', wrong])
    expect(refused.code).toBe(3)
    expect(refused.stderr).toContain('switch_after (300 ms) must be larger than heartbeat_interval')
  })

  it('X24, X25, X31, X32, X36, X40, X47, X50: two watchers, a primary that freezes, and its return', {
    timeout: 240_000,
  }, async () => {
    const logFile = join(mkdtempSync(join(inject('runDirectory'), 'ha-log-')), 'watch.log')
    const watchers = [1, 2].map(() =>
      startCli(['ha', 'watch', '--config', configPath, '--log-file', logFile]),
    )
    watching.push(...watchers)
    for (const watcher of watchers)
      await watcher.waitForOutput(/watching 2 groups, 4 nodes/, 30_000)
    const status = async () => {
      const said = await ha('status', '--json')
      const { groups } = JSON.parse(said.stdout) as {
        groups: { name: string; current: string; primary: { healthy: boolean } }[]
      }
      return groups.find(({ name }) => name === 'one')!
    }
    await waitFor(async () => (await status()).primary.healthy, {
      what: 'heartbeats',
      deadlineMs: 60_000,
    })
    const sessions = await postgres().query(
      "select usename, bool_or(state = 'idle in transaction') as open from pg_stat_activity where application_name = 'pgshard ha' group by 1",
      [],
      1,
    )
    expect(sessions).toEqual([{ usename: 'hauser', open: false }])

    await onNode(0, "update myuser set username = 'old' where id = 5")
    const frozen = [postgres().servers[1]!.pid, ...childrenOf(postgres().servers[1]!.pid)]
    for (const pid of frozen) process.kill(pid, 'SIGSTOP')
    try {
      await waitFor(async () => (await status()).current === 'standby', {
        what: 'the switch',
        deadlineMs: 60_000,
      })
      const after = await postgres().connect(0)
      const { rows } = await after.query('select get_username(5)')
      expect(rows).toEqual([{ get_username: 'user5' }])
      await after.end()
    } finally {
      for (const pid of frozen) process.kill(pid, 'SIGCONT')
    }
    await waitFor(async () => (await status()).primary.healthy, {
      what: 'the return',
      deadlineMs: 60_000,
    })
    expect((await status()).current).toBe('standby')
    for (const watcher of watchers) {
      watcher.signal('SIGTERM')
      const { code, stdout } = await watcher.ended
      expect(code).toBe(0)
      expect(stdout).toContain('signal SIGTERM')
      expect(stdout).not.toContain('beat@')
    }
    const log = readFileSync(logFile, 'utf8')
    for (const line of log.trimEnd().split('\n'))
      expect(line).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d : plpcluster : \S/)
    // one of the two did it, the other found it done
    expect(log.match(/group 1 \(one\): route is on the standby/g)).toHaveLength(1)
    await waitFor(
      async () =>
        (
          await postgres().query(
            "select 1 from pg_stat_activity where application_name = 'pgshard ha'",
          )
        ).length === 0,
      { what: 'no session left', deadlineMs: 30_000 },
    )
  })
})

const childrenOf = (pid: number): number[] =>
  execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map(Number)

/** One switch, step by step: ages by the state database's clock, the fencing command, the compare-and-set, the promotion. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import type { HaGroup, HaPlan } from '../../../src/ha/ha-plan.js'
import { flipRoute, lockSwitch, readGroups, unlockSwitch } from '../../../src/ha/ha-store.js'
import { initGroups } from '../../../src/ha/init-groups.js'
import { openLinks } from '../../../src/ha/links.js'
import { switchGroup } from '../../../src/ha/switch-group.js'
import { FakeClock } from '../../support/fake-clock.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

describe('a switch', () => {
  const postgres = usePostgres({ count: 1, replicas: 1 })
  let plan: HaPlan
  const group = (more: Partial<HaGroup> = {}): HaGroup => ({ ...plan.groups[0]!, ...more })
  const ages = (primary: number, standby: number) =>
    postgres().query(
      `update ha_config set current_hostid = 0, primary_hearttime = now()::timestamp - interval '${primary} s', standby_hearttime = now()::timestamp - interval '${standby} s'`,
    )
  const current = async () =>
    Number((await postgres().query('select current_hostid from ha_config'))[0]!['current_hostid'])

  beforeAll(async () => {
    const replica = postgres().replicas[0]!
    plan = {
      state: postgres().url(0),
      cluster: 'c',
      user: 'hauser',
      password: 'beat',
      connectTimeoutMs: 5000,
      statementTimeout: 60,
      groups: [
        {
          id: 1,
          name: 'one',
          primary: postgres().url(0),
          standby: `postgres://postgres@${replica.host}:${replica.port}/${postgres().database}`,
          heartbeatIntervalMs: 10_000,
          switchAfterMs: 20_000,
          fencingCommand: undefined,
          promote: true,
        },
      ],
    }
    await postgres().query(`alter database ${postgres().database} set timezone = 'Asia/Tokyo'`)
    await initGroups({ plan, routes: [], dryRun: false, drop: false })
    await postgres().query(`alter database ${postgres().database} set timezone = 'UTC'`)
    await postgres().query('grant execute on function pg_promote to hauser')
  })

  const withState = async <T>(
    work: (link: Awaited<ReturnType<ReturnType<typeof openLinks>>>) => Promise<T>,
  ) => {
    const link = await openLinks(plan, systemClock)(undefined)
    try {
      return await work(link)
    } finally {
      await link.close()
    }
  }

  test('X43: ages are those of the state database, whatever the clock here', async () => {
    await ages(30, 1)
    const link = await openLinks(plan, new FakeClock())(undefined)
    const [row] = await readGroups(link)
    await link.close()
    expect(row!.primaryAgeMs).toBeGreaterThan(29_999)
    expect(row!.primaryAgeMs).toBeLessThan(300_000)
    expect(row!.current).toBe('primary')
  })

  test('X36, X39: the statement that switches looks at the ages itself', async () => {
    await withState(async (state) => {
      await ages(1, 1)
      expect(await flipRoute(state, group(), 'standby')).toBe(false)
      await ages(600, 600)
      expect(await flipRoute(state, group(), 'standby')).toBe(false)
      await ages(600, 1)
      expect(await flipRoute(state, group(), 'standby')).toBe(true)
      // the second of two watchers finds it done
      expect(await flipRoute(state, group(), 'standby')).toBe(false)
      expect(await current()).toBe(1)
    })
  })

  const act = (more: Partial<HaGroup>) =>
    withState((state) =>
      switchGroup({
        state,
        open: openLinks(plan, systemClock),
        clock: systemClock,
        group: group({ promote: false, ...more }),
        to: 'standby',
        action: 'fail_over',
      }),
    )

  test('X48: the command runs before the route changes, and knows what it is about', async () => {
    const folder = mkdtempSync(join(inject('runDirectory'), 'hook-'))
    const [file, go] = [join(folder, 'said'), join(folder, 'go')]
    await ages(600, 1)
    const say = `echo "$PGSHARD_HA_ACTION $PGSHARD_HA_GROUP $PGSHARD_HA_FROM $PGSHARD_HA_TO" > ${file}`
    const acting = act({ fencingCommand: `${say}; until [ -e ${go} ]; do sleep 0.05; done` })
    await waitFor(() => existsSync(file))
    for (let looks = 0; looks < 20; looks++) expect(await current()).toBe(0)
    writeFileSync(go, '')
    expect(await acting).toBe(true)
    expect(await current()).toBe(1)
    const [server, replica] = [postgres().servers[0]!, postgres().replicas[0]!]
    expect(readFileSync(file, 'utf8')).toBe(
      `fail_over one ${server.host}:${server.port} ${replica.host}:${replica.port}\n`,
    )
  })

  test('a command that fails or hangs keeps the route', async () => {
    await ages(600, 1)
    await expect(act({ fencingCommand: 'echo no power >&2; exit 3' })).rejects.toMatchObject({
      code: 'HA_FENCING',
      message: expect.stringContaining('exit code 3 no power'),
    })
    const file = join(mkdtempSync(join(inject('runDirectory'), 'hook-')), 'late')
    await expect(
      act({ fencingCommand: `sleep 20; touch ${file}`, switchAfterMs: 300 }),
    ).rejects.toMatchObject({ message: expect.stringContaining('did not end within 300 ms') })
    expect(existsSync(file)).toBe(false)
    expect(await current()).toBe(0)
  })

  test('only one switches a group at a time', async () => {
    await ages(600, 1)
    await withState(async (other) => {
      expect(await lockSwitch(other, 1)).toBe(true)
      await expect(act({})).rejects.toMatchObject({ code: 'HA_BUSY' })
      await unlockSwitch(other, 1)
      expect(await act({})).toBe(true)
    })
  })

  test('a streaming replica is promoted before the route changes', async () => {
    await ages(600, 1)
    expect(await act({ promote: true })).toBe(true)
    const standby = openLinks(plan, systemClock)(group().standby)
    const link = await standby
    await waitFor(
      async () => (await link.run('select pg_is_in_recovery() as r'))[0]!['r'] === 'f',
      {
        what: 'the promotion',
        deadlineMs: 30_000,
      },
    )
    await link.close()
  })
})

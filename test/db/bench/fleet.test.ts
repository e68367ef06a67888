/** bench/fleet.mjs: one process against several by number of clients, with processor times and where they come from. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { projectRoot } from '../../support/run-cli.js'
import { isMissing } from '../../support/tools.js'
import { runProgram } from '../drivers/driver-rig.js'

interface Measured {
  tps: number
  busy_cores: { pooler: number; postgres: number; generator: number }
  busiest_tier: string
  machine_busy_cores: number
}

test.skipIf(isMissing('pgbench'))(
  'B19, B20, B25, B26, B28: both configurations, a sweep, labelled readings, a load that is held',
  { timeout: 180_000 },
  async () => {
    const done = await runProgram(
      process.execPath,
      [
        join(projectRoot, 'bench/fleet.mjs'),
        ...['--workers', '1,2', '--clients', '2,4', '--seconds', '2', '--hold', '3', '--json'],
      ],
      { timeoutMs: 170_000 },
    )
    expect(done.stderr).toBe('')
    const result = JSON.parse(done.stdout) as {
      workers: object
      configuration: object
      cpu_sources: Record<string, string>
      rows: { clients: number; single: Measured; fleet: Measured; ratio: number }[]
      hold: { clients: number; seconds: number; single: Measured; fleet: Measured }
      model: { elsewhere: { clients: number; ratio: number }[] }
    }
    expect(result.workers).toEqual({ single: 1, fleet: 2 })
    expect(result.configuration).toMatchObject({ pool: 20, seconds: 2, rounds: 1 })
    expect(Object.keys(result.cpu_sources)).toEqual(['process', 'machine', 'provider'])
    expect(result.rows.map(({ clients }) => clients)).toEqual([2, 4])
    expect(result.hold).toMatchObject({ clients: 4, seconds: 3 })
    for (const { single, fleet } of [...result.rows, result.hold])
      for (const one of [single, fleet]) {
        expect(one.tps).toBeGreaterThan(0)
        expect(one.busy_cores.pooler).toBeGreaterThan(0)
        expect(one.busy_cores.postgres).toBeGreaterThan(0)
        expect(one.busy_cores[one.busiest_tier as 'pooler']).toBe(
          Math.max(...Object.values(one.busy_cores)),
        )
        expect(one.machine_busy_cores).toBeGreaterThan(0)
      }
    expect(result.model.elsewhere.map(({ clients }) => clients)).toEqual([8, 32, 64, 128, 256])
  },
)

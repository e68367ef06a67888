/** The whole program on a shop with two databases: serve, the reshard commands, and what must stand on the shards in the end. */
import { expect } from 'vitest'
import { consoleUrl, move, rowsOf, type Shop } from '../../support/live-shop.js'
import type { TestPostgres } from '../../support/postgres.js'
import { type CliResult, runCli, startCli } from '../../support/run-cli.js'

export const settings = {
  max_wal_senders: '80',
  max_replication_slots: '80',
  max_connections: '300',
}

export async function startServe(shop: Shop) {
  const program = startCli(['serve', '--config', shop.config, '--users', shop.users])
  const [, port] = await program.waitForOutput(/listening on 127\.0\.0\.1:(\d+)/)
  return { program, port: Number(port) }
}

export const reshard = (
  shop: Shop,
  verb: string,
  port: number,
  more: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<CliResult> =>
  runCli(
    [
      ...['reshard', verb, '--config', shop.config, ...move, '--yes', '--json'],
      ...[
        '--proxy',
        consoleUrl(port),
        ...(more.includes('--budget-ms') ? [] : ['--budget-ms', '20000']),
        ...more,
      ],
    ],
    { timeoutMs: 150_000, env },
  )

export const outputOf = ({ stdout, stderr }: CliResult): string => `${stdout}\n${stderr}`

/** What stands on the shards is what writers were told. */
export async function expectLedger(
  postgres: TestPostgres,
  databases: readonly string[],
  ...ledgers: readonly ReadonlyMap<string, number>[]
): Promise<void> {
  const rows = await rowsOf(postgres, databases)
  const told = new Map(ledgers.flatMap((one) => [...one]))
  for (const [key, n] of told) expect(rows.get(key), key).toBe(n)
  expect(rows.size).toBe(told.size)
}

export const slotsLeft = (postgres: TestPostgres): Promise<unknown[]> =>
  postgres.query(`SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 'pgshard_%'`)

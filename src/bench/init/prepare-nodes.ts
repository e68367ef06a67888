/** What happens on every node before a run: the scale is read, tables are vacuumed as pgbench does, each node on its own. */
import type pg from 'pg'
import { isEngineError } from '../../errors/engine-error.js'
import { adminQuery, closePg } from '../../pg/admin-query.js'
import { connectPg, eachHost } from '../../pg/connect.js'
import type { Conninfo } from '../../topology/conninfo.js'

export interface PrepareOptions {
  /** Built-in scripts are used: their tables must be there. */
  readonly needsTables: boolean
  readonly vacuum: 'none' | 'default' | 'all'
  /** Used when no built-in script runs. */
  readonly scale: number | undefined
  warn(line: string): void
}

export interface PreparedNodes {
  readonly scale: number
  readonly serverVersion: string
}

function distinctHosts(conninfo: Conninfo): Conninfo[] {
  const seen = new Set<string>()
  return eachHost({ ...conninfo, targetSessionAttrs: 'any' }).filter(({ hosts: [host] }) => {
    const key = `${host!.host}/${host!.hostaddr ?? ''}/${host!.port}`
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}

async function scaleOf(client: pg.Client): Promise<number> {
  try {
    const rows = await adminQuery(client, 'select count(*) from pgbench_branches')
    return Number(rows[0]?.['count'] ?? 0)
  } catch (error) {
    if (isEngineError(error) && error.sqlstate === '42P01')
      throw Object.assign(error, {
        hint: 'perhaps you need to initialize first: pgshard bench init with the same connection string',
      })
    throw error
  }
}

const standard = ['vacuum pgbench_branches', 'vacuum pgbench_tellers', 'truncate pgbench_history']

/** As pgbench: a failure is told and ignored. */
async function vacuum(client: pg.Client, options: PrepareOptions): Promise<void> {
  const statements =
    options.vacuum === 'all' ? [...standard, 'vacuum analyze pgbench_accounts'] : standard
  for (const statement of statements) {
    try {
      await adminQuery(client, statement)
    } catch (error) {
      options.warn(`${(error as Error).message} (ignoring this error and continuing anyway)`)
    }
  }
}

/** Connects to each node; those that are down are passed over as long as one answers. */
export async function prepareNodes(
  conninfo: Conninfo,
  options: PrepareOptions,
): Promise<PreparedNodes> {
  const scales: number[] = []
  const failures: unknown[] = []
  let serverVersion: string | undefined
  for (const node of distinctHosts(conninfo)) {
    let client: pg.Client
    try {
      client = await connectPg(node, { applicationName: 'pgshard bench' })
    } catch (error) {
      failures.push(error)
      continue
    }
    try {
      serverVersion ??=
        (await adminQuery(client, 'show server_version'))[0]?.['server_version'] ?? ''
      if (options.needsTables) scales.push(await scaleOf(client))
      if (options.vacuum !== 'none') await vacuum(client, options)
    } finally {
      await closePg(client)
    }
  }
  if (serverVersion === undefined) throw failures[0]
  for (const failure of failures)
    options.warn(`going on without a node: ${(failure as Error).message}`)
  const [scale = options.scale ?? 1] = scales
  if (scales.some((other) => other !== scale))
    options.warn(`nodes have different scales (${scales.join(', ')}); using the first`)
  if (options.needsTables && options.scale !== undefined)
    options.warn(`scale option ignored, using count from pgbench_branches table (${scale})`)
  return { scale, serverVersion }
}

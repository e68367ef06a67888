/** The recorded conversations of fixtures/wire/proto, played against serve in front of one PostgreSQL 15. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { projectRoot } from '../../support/run-cli.js'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

const folder = join(projectRoot, 'fixtures/wire/proto')

describe.each([1, 4])('D1: wire cases through serve, pool of %i, pipelining on', (poolSize) => {
  const postgres = usePostgres({ version: 15, own: true })
  let served: Served

  beforeAll(async () => {
    const server = postgres().servers[0]!
    // the conversations name user and database postgres
    const shards = [{ host: server.host, port: server.port, database: 'postgres' }]
    const general = [`default_pool_size = ${poolSize}`]
    served = await startServe({ shards, database: 'postgres', general })
  })

  it.each(readdirSync(folder).filter((name) => name.endsWith('.json')))(
    '%s answers as a direct server',
    (name) => {
      const server = postgres().servers[0]!
      const played = spawnSync(
        process.execPath,
        [
          join(projectRoot, 'fixtures/wire/play-wire.mjs'),
          ...['--port', String(served.port), '--direct-port', String(server.port)],
          join(folder, name),
        ],
        { encoding: 'utf8' },
      )
      expect(played.stdout).toBe('1 passed, 0 failed\n')
    },
  )
})

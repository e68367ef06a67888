import { afterAll, beforeAll } from 'vitest'
import { type PostgresOptions, startPostgres, type TestPostgres } from './postgres.js'

/**
 * Servers for all tests of a file or a describe block: `const postgres = usePostgres({ count: 2 })`
 * at its top, then `postgres()` inside tests and hooks that come after.
 */
export function usePostgres(options: PostgresOptions = {}): () => TestPostgres {
  let running: TestPostgres | undefined
  beforeAll(async () => {
    running = await startPostgres(options)
  })
  afterAll(() => running?.stop())
  return () => {
    if (!running) throw new Error('PostgreSQL is started in beforeAll; it is not there yet')
    return running
  }
}

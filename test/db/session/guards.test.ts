/** Limits and logs that look at every statement of a client before it runs. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { rowsOf, say, WireClient, type WireError } from '../../support/wire-client.js'

describe('guards of requests', () => {
  const postgres = usePostgres({ version: 15 })
  let blocking: Served
  let warning: Served
  let logPath: string

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const shards = [{ host, port, database: postgres().database }]
    logPath = join(inject('runDirectory'), `statements-${process.pid}.log`)
    const limits = ['query_size_limit = 200']
    blocking = await startServe({
      shards,
      general: [...limits, 'query_size_limit_action = "block"', `query_log = "${logPath}"`],
    })
    warning = await startServe({ shards, general: [...limits, 'query_log_stdout = true'] })
  })

  const long = `select '${'x'.repeat(300)}'`

  it('end a client whose Query or Parse is longer than query_size_limit, with 54000', async () => {
    for (const message of [say.query(long), Buffer.concat([say.parse('', long), say.sync()])]) {
      const client = await WireClient.open(blocking)
      const failure = await client.ask(message).catch((error: unknown) => error)
      expect((failure as WireError).fields['C']).toBe('54000')
    }
    const client = await WireClient.open(blocking)
    const [answer = []] = await client.ask([
      say.parse('', 'select length($1)'),
      say.bind('', ['x'.repeat(300)]),
      say.execute(),
      say.sync(),
    ])
    expect(rowsOf(answer)).toEqual([['300']])
    await client.end()
  })

  it('only say so when the action is warn', async () => {
    const client = await WireClient.open(warning)
    expect(await client.rows(long)).toHaveLength(1)
    await warning.program.waitForOutput(/longer than query_size_limit.*bytes=\d+/)
    await client.end()
  })

  it('write every statement without its literals and comments', async () => {
    const client = await WireClient.open(blocking)
    await client.rows("/* hush */ select 'geheim', 4711, $$geheim$$ -- geheim")
    await client.ask([say.parse('', "select 'geheim2'::text"), say.sync()])
    await client.end()
    const lines = await waitFor(() => {
      const text = readFileSync(logPath, 'utf8')
      return text.includes('::text') && text
    })
    expect(lines).toContain('"statement":"select ?, ?, ?"')
    expect(lines).toContain('"statement":"select ?::text"')
    expect(lines).not.toMatch(/geheim|4711|hush/)
    const other = await WireClient.open(warning)
    await other.rows("select 'geheim', 2 as two")
    await other.end()
    await warning.program.waitForOutput(/statement="select \?, \? as two"/)
    expect(warning.program.stderr + warning.program.stdout).not.toContain('geheim')
  })
})

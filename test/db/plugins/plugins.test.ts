/** Plugins in a running serve: loaded, begun, asked, followed, ended. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

const api = pathToFileURL(join(import.meta.dirname, '../../../dist/src/index.js')).href

const plugin = (body: string) =>
  `import { definePlugin } from '${api}'\nimport { appendFileSync } from 'node:fs'\n${body}\n`

/** Sends what names no key to shard 1, and notes each phase of its life in the file that `config` names. */
const good = plugin(`let path
export default definePlugin({
  init: ({ config, name, log }) => { path = config; appendFileSync(path, 'init ' + name + '\\n'); log('hello') },
  route: ({ statement, parameters, cluster }) => {
    if (!statement.tables.some((table) => table.name === 't')) return undefined
    appendFileSync(path, 'route ' + statement.kind + ' ' + parameters.map((one) => one.text).join() + ' of ' + cluster.shardCount + '\\n')
    return statement.text.includes('anywhere') ? { shard: 1 } : undefined
  },
  fini: () => appendFileSync(path, 'fini\\n'),
})`)

describe('plugins of serve', () => {
  const postgres = usePostgres({ version: 15, count: 2 })
  let served: Served
  let notes: string
  let directory: string

  const entry = (name: string, text: string, more = '') => {
    const module = join(directory, `${name}.mjs`)
    writeFileSync(module, text)
    return `[[plugins]]\nname = "${name}"\nmodule = "${module}"\n${more}\n`
  }

  beforeAll(async () => {
    directory = mkdtempSync(join(inject('runDirectory'), 'plugins-'))
    notes = join(directory, 'notes')
    writeFileSync(notes, '')
    const { servers, database } = postgres()
    for (const shard of [0, 1]) {
      await postgres().query('create table t (k bigint, shard int)', [], shard)
      await postgres().query(
        'insert into t select n, $1 from generate_series(1, 3) n',
        [shard],
        shard,
      )
    }
    served = await startServe({
      shards: servers.map(({ host, port }) => ({ host, port, database })),
      tables: [
        '[[sharded_tables]]\ndatabase = "app"\nname = "t"\ncolumn = "k"',
        entry('old', 'export default { apiVersion: 0, route() {} }'),
        entry(
          'dead',
          plugin(
            "export default definePlugin({ init() { throw new Error('no life') }, route() {} })",
          ),
        ),
        // 50 ms, the default, may pass on a loaded machine; then the statement goes its own way
        entry('good', good, `config = "${notes}"\ntimeout = 10000`),
        entry(
          'bad',
          plugin("export default definePlugin({ route() { throw new Error('bad day') } })"),
        ),
      ].join('\n'),
    })
  })

  const noted = () => readFileSync(notes, 'utf8').split('\n').filter(Boolean)

  it('D198, D201: ES modules of the configuration are loaded, one of another version is not', () => {
    const log = served.program.stderr
    expect(log).toMatch(/a plugin was loaded plugin=good/)
    expect(log).toMatch(/hello plugin=good/)
    expect(log).toMatch(/a plugin was not loaded plugin=old error="it is made for version 0/)
    expect(log).toMatch(/a plugin was not loaded plugin=dead error="no life"/)
    expect(noted()[0]).toBe('init good')
  })

  it('D200: a plugin chooses the shard of what names none', async () => {
    const rows = await served.query('select distinct shard from t /* anywhere */')
    expect(rows).toEqual([{ shard: 1 }])
    expect(noted().at(-1)).toBe('route select  of 2')
  })

  it('its wish against the key of the statement is an error', async () => {
    // 3 lives on shard 1, 1 on shard 0.
    expect(await served.query('select shard from t where k = 3 /* anywhere */')).toEqual([
      { shard: 1 },
    ])
    await expect(served.query('select shard from t where k = 1 /* anywhere */')).rejects.toThrow(
      'plugin "good" names shard 1, but the statement needs shard 0',
    )
  })

  it('D199: it sees the parameters; one that throws hurts nobody', async () => {
    expect(await served.query('select shard from t where k = $1', [3])).toEqual([{ shard: 1 }])
    expect(noted()).toContain('route select 3 of 2')
    expect(served.program.stderr).toMatch(/a plugin failed plugin=bad error="bad day"/)
  })

  it('D197: init once, route for each statement, fini at the end', async () => {
    served.program.signal('SIGTERM')
    await served.program.ended
    const phases = noted().map((line) => line.split(' ')[0])
    expect(phases[0]).toBe('init')
    expect(phases.slice(1, -1).every((phase) => phase === 'route')).toBe(true)
    expect(phases.length).toBeGreaterThan(4)
    expect(phases.at(-1)).toBe('fini')
  })
})

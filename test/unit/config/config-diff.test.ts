/** What RELOAD does, by what was changed in the file. */
import { describe, expect, test } from 'vitest'
import { poolSettings } from '../../../src/config/compile/pool-settings.js'
import { diffConfig } from '../../../src/config/config-diff.js'
import { app, load, shop, twoShards } from './config-files.js'

const general = (keys: string) => `[general]\n${keys}\n`
const hash = '[[sharded_tables]]\ndatabase = "shop"\ncolumn = "id"\n'

/** The actions of all pools, in order, and the rest. */
function diff(before: [string, string?], after: [string, string?]) {
  const { pools, ...rest } = diffConfig(load(...before), load(...after))
  return { actions: pools.map(({ action }) => action), ...rest }
}

const nothing = { resharded: [], users: [], needRestart: [], changed: [], any: false }

describe('diffConfig', () => {
  test('nothing changed', () => {
    expect(diff([twoShards], [twoShards])).toEqual({ actions: ['keep', 'keep'], ...nothing })
  })

  test.each<[string, string, string]>([
    ['size', 'default_pool_size = 11', 'default_pool_size'],
    ['unlimited', 'idle_timeout = 9223372036854775807', 'idle_timeout'],
  ])('%s keeps the connections', (_, keys, key) => {
    const found = diff([shop], [`${general(keys)}${shop}`])
    expect(found).toEqual({ ...nothing, actions: ['adjust'], changed: [key], any: true })
  })

  test.each<[string, string, string]>([
    ['the password of the host', shop, `${shop}password = "x"\n`],
    ['the role', shop, `${shop}role = "replica"\n`],
    ['a server setting', shop, `${shop}statement_timeout = 5\n`],
    ['TLS', shop, `${general('tls_verify = "verify_full"')}${shop}`],
  ])('%s makes new connections', (_, before, after) => {
    expect(diff([before], [after])).toMatchObject({ actions: ['replace'], any: true })
  })

  test('a new host opens, an old one closes', () => {
    const moved = twoShards.replace('10.0.0.2', '10.0.0.3')
    expect(diff([twoShards], [moved]).actions).toEqual(['keep', 'close', 'open'])
  })

  test('a new user opens pools of its own', () => {
    const more = `${app}[[users]]\nname = "b"\ndatabase = "shop"\npassword = "x"\n`
    expect(diff([shop], [shop, more])).toMatchObject({ actions: ['keep', 'open'], users: ['b'] })
  })

  test('another password of a user is told and makes new connections', () => {
    const found = diff([shop], [shop, app.replace('secret', 'other')])
    expect(found).toMatchObject({ actions: ['replace'], users: ['app'] })
  })

  test('another map voids the plans of its database', () => {
    const before = `${twoShards}${hash}`
    const after = `${twoShards}${hash}bucket_map = [1, 0]\n`
    expect(diff([before], [after])).toMatchObject({
      actions: ['keep', 'keep'],
      resharded: ['shop'],
      any: true,
    })
  })

  test('what needs a restart is named', () => {
    const found = diff([shop], [`${general('port = 7000\nquery_timeout = 5')}${shop}`])
    expect(found).toMatchObject({ needRestart: ['port'], changed: ['query_timeout'], any: true })
  })
})

describe('poolSettings', () => {
  const settings = (host: string, user: string) => {
    const config = load(`${shop}${host}\n`, `${app}${user}\n`)
    const [target] = config.databases[0]?.shards[0]?.hosts ?? []
    const [login] = config.users
    if (!target || !login) throw new Error('not compiled')
    return (role?: 'primary' | 'replica') => poolSettings(config.general, target, login, role)
  }

  test('user before host before general', () => {
    expect(settings('', '')()).toMatchObject({ maxSize: 10, minSize: 1, readOnly: false })
    expect(settings('pool_size = 3\nread_only = true', '')()).toMatchObject({
      maxSize: 3,
      readOnly: true,
    })
    expect(settings('pool_size = 3', 'pool_size = 4\npooler_mode = "session"')()).toMatchObject({
      maxSize: 4,
      mode: 'session',
    })
  })

  test('the role that the host has now chooses', () => {
    const of = settings('role = "auto"\npool_size = 3\npool_size_replica = 8', '')
    expect(of('primary').maxSize).toBe(3)
    expect(of('replica').maxSize).toBe(8)
  })

  test('the minimum is never above the maximum', () => {
    expect(settings('pool_size = 2\nmin_pool_size = 5', '')().minSize).toBe(2)
  })
})

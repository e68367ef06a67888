import { describe, expect, it } from 'vitest'
import { rawSetting } from '../../../../src/server/settings.js'
import { startupSettings } from '../../../../src/session/state/startup-settings.js'

const settings = (parameters: Record<string, string>, defaults: Record<string, string> = {}) =>
  Object.fromEntries(
    startupSettings(new Map(Object.entries(parameters)), new Map(Object.entries(defaults))).values,
  )

describe('startup settings', () => {
  it('reads options as the server does, with escaped spaces', () => {
    expect(
      settings({
        user: 'u',
        options:
          '-c statement_timeout=4321 -cwork_mem=5MB --lock-timeout=1 -c search_path="a\\ b",public',
      }),
    ).toEqual({
      lock_timeout: "'1'",
      search_path: rawSetting('"a b",public'),
      statement_timeout: "'4321'",
      work_mem: "'5MB'",
    })
  })

  it('leaves out what the server reports by itself, and what is no setting', () => {
    expect(
      settings(
        { user: 'u', database: 'd', client_encoding: 'UTF8', '_pq_.x': '1' },
        { client_encoding: 'UTF8' },
      ),
    ).toEqual({})
  })

  it('refuses options that are not parameters', () => {
    expect(() => settings({ options: '-x' })).toThrow(
      /invalid command-line argument for server process: -x/,
    )
  })
})

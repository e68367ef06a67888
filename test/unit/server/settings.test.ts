import { describe, expect, it } from 'vitest'
import {
  quoteLiteral,
  rawSetting,
  Settings,
  settingsDifference,
} from '../../../src/server/settings.js'

describe('settings', () => {
  it('are one object for equal contents, whatever the order', () => {
    const a = Settings.none.with('TimeZone', "'UTC'").with('work_mem', "'4MB'")
    const b = Settings.none.with('work_mem', "'4MB'").with('timezone', "'UTC'")
    expect(a).toBe(b)
    expect(a.without('timezone').without('WORK_MEM')).toBe(Settings.none)
  })

  it('name only what must change to get from one to the other', () => {
    const present = Settings.none.with('timezone', "'UTC'").with('work_mem', "'4MB'")
    const wanted = Settings.none.with('timezone', "'CET'").with('statement_timeout', '5')
    expect(settingsDifference(present, wanted)).toBe(
      "RESET work_mem; SET statement_timeout TO 5; SET timezone TO 'CET'",
    )
    expect(settingsDifference(wanted, wanted)).toBe('')
  })

  it('set the session user before what depends on it', () => {
    const wanted = Settings.none
      .with('a_setting', '1')
      .with('role', 'r')
      .with('session_authorization', 's')
    expect(settingsDifference(Settings.none, wanted)).toBe(
      'SET session_authorization TO s; SET role TO r; SET a_setting TO 1',
    )
  })

  it('keep routing hints from servers, and raw lists as they stand', () => {
    const wanted = Settings.none
      .with('pgdog.shard', '1')
      .with('search_path', rawSetting('"a b",public'))
    expect(settingsDifference(Settings.none, wanted)).toBe(
      "SELECT pg_catalog.set_config('search_path', '\"a b\",public', false)",
    )
  })

  it('quote literals with quotes and backslashes', () => {
    expect(quoteLiteral("it's")).toBe("'it''s'")
    expect(quoteLiteral('a\\b')).toBe("E'a\\\\b'")
  })
})

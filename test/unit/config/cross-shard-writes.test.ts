/** How transactions over shards commit, from PgDog's keys and ours (hard-parts §3.6). */
import { describe, expect, test } from 'vitest'
import { app, load, shop } from './config-files.js'

const writes = (general: string, user = ''): (string | undefined)[] => {
  const config = load(`[general]\n${general}\n${shop}`, `${app}${user}`)
  return [config.general.crossShardWrites, config.users[0]?.crossShardWrites]
}

describe('cross_shard_writes', () => {
  test('D78, D79, D80: a written two_phase_commit = false means error, in general and for a user', () => {
    expect(writes('')).toEqual([undefined, undefined])
    expect(writes('two_phase_commit = false')).toEqual(['error', 'error'])
    expect(writes('two_phase_commit = true')).toEqual(['two_phase', 'two_phase'])
    expect(writes('', 'two_phase_commit = false')).toEqual([undefined, 'error'])
    expect(writes('two_phase_commit = false', 'two_phase_commit = true')).toEqual([
      'error',
      'two_phase',
    ])
  })

  test('best_effort is taken by name only, with a warning', () => {
    const config = load(`[general]\ncross_shard_writes = "best_effort"\n${shop}`)
    expect(config.general.crossShardWrites).toBe('best_effort')
    const said = config.warnings.filter((warning) => warning.includes('best_effort'))
    expect(said).toEqual([expect.stringContaining('leaves some shards committed')])
    expect(load(shop).warnings.join()).not.toContain('best_effort')
  })
})

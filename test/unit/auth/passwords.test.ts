import { describe, expect, it } from 'vitest'
import { md5Hash, md5Password, md5Proves } from '../../../src/auth/md5.js'
import { passwordMatches } from '../../../src/auth/plain.js'
import { makeScramVerifier } from '../../../src/auth/scram-verifier.js'
import { UserTable } from '../../../src/auth/user-table.js'

const salt = Buffer.from([1, 2, 3, 4])

describe('md5', () => {
  it('is what PostgreSQL stores and libpq answers', () => {
    // SELECT 'md5' || md5('secret' || 'alice')
    expect(md5Hash('alice', 'secret')).toBe('md54a0a68b43b6cd5cf266fa02f196e2371')
    const answer = md5Password('alice', 'secret', salt)
    expect(answer).toMatch(/^md5[0-9a-f]{32}$/)
    expect(md5Password('alice', md5Hash('alice', 'secret'), salt)).toBe(answer)
    expect(md5Proves('alice', ['other', 'secret'], salt, answer)).toBe(true)
    expect(md5Proves('alice', ['other'], salt, answer)).toBe(false)
    expect(md5Proves('bob', ['secret'], salt, answer)).toBe(false)
    expect(md5Proves('alice', ['secret'], Buffer.from([4, 3, 2, 1]), answer)).toBe(false)
    expect(md5Proves('alice', [], salt, answer)).toBe(false)
  })
})

describe('a password in clear', () => {
  it('is held against clear text, md5 form and verifiers', async () => {
    for (const secret of ['pw', md5Hash('u', 'pw'), makeScramVerifier('pw')]) {
      expect(await passwordMatches('u', ['x', secret], 'pw'), secret).toBe(true)
      expect(await passwordMatches('u', [secret], 'PW'), secret).toBe(false)
      expect(await passwordMatches('u', [secret], 'pw '), secret).toBe(false)
    }
    expect(await passwordMatches('u', [''], '')).toBe(false)
    expect(await passwordMatches('u', [], 'pw')).toBe(false)
  })
})

describe('the user table', () => {
  const table = new UserTable([
    { name: 'a', databases: ['x', 'y'], passwords: ['1', ''], passwordHash: 'hash' },
    { name: 'a', databases: ['z'], passwords: ['2'] },
  ])

  it('finds by user and database together', () => {
    expect(table.secrets('a', 'y')).toEqual(['hash', '1'])
    expect(table.secrets('a', 'z')).toEqual(['2'])
    expect(table.secrets('a', 'w')).toEqual([])
    expect(table.secrets('b', 'x')).toEqual([])
    expect([table.hasUser('a'), table.hasUser('__proto__')]).toEqual([true, false])
  })
})

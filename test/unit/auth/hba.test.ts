import { describe, expect, test } from 'vitest'
import { type HbaClient, matchHba, parseHba } from '../../../src/auth/hba.js'

const client: HbaClient = { user: 'u', database: 'd', address: '192.168.1.5', encrypted: false }
const own = [{ address: '192.168.1.1', netmask: '255.255.255.0' }]

/** Method of the first rule that fits. */
function decide(lines: string[], change: Partial<HbaClient> = {}): string | undefined {
  const { rules, problems } = parseHba(lines)
  expect(problems).toEqual([])
  return matchHba(rules, { ...client, ...change }, own)?.method
}

describe('rules of pg_hba.conf', () => {
  test('the first that fits counts, and without one nobody may', () => {
    const lines = ['# nothing', '', 'host d u all md5 # why', 'host all all all reject']
    expect(decide(lines)).toBe('md5')
    expect(decide(lines, { user: 'other' })).toBe('reject')
    expect(decide(lines, { address: undefined })).toBeUndefined()
    expect(decide([])).toBeUndefined()
  })

  test('types tell encrypted, plain and local connections apart', () => {
    const lines = [
      'local all all trust',
      'hostssl all all all scram-sha-256',
      'hostnossl all all all md5',
    ]
    expect(decide(lines, { address: undefined })).toBe('trust')
    expect(decide(lines, { encrypted: true })).toBe('scram-sha-256')
    expect(decide(lines)).toBe('md5')
    expect(decide(['hostnogssenc all all all md5'], { encrypted: true })).toBe('md5')
  })

  test.each([
    ['192.168.1.5/32', true],
    ['192.168.0.0/16', true],
    ['192.168.1.4/31', true],
    ['192.168.1.6/31', false],
    ['0.0.0.0/0', true],
    ['::/0', false],
    ['192.168.1.0 255.255.255.0', true],
    ['192.168.2.0 255.255.255.0', false],
    ['samenet', true],
    ['samehost', false],
    ['all', true],
  ])('address %s: %s', (address, fits) => {
    expect(decide([`host all all ${address} trust`])).toBe(fits ? 'trust' : undefined)
  })

  test.each([
    ['::1/128', '::1', true],
    ['::1/128', '::2', false],
    ['fe80::/10', 'fe80::1%eth0', true],
    ['2001:db8::/32', '2001:db8:1:2:3:4:5:6', true],
    ['2001:db8::/33', '2001:db8:8000::1', false],
    ['10.0.0.0/8', '::ffff:10.1.2.3', true],
    ['all', '[gone]', true],
    ['0.0.0.0/0', '[gone]', false],
  ])('address %s and client %s: %s', (address, from, fits) => {
    const expected = from === '[gone]' ? undefined : fits ? 'trust' : undefined
    expect(decide([`host all all ${address} trust`], { address: from })).toBe(expected)
  })

  test('names: lists, quotes that take the meaning away, sameuser, replication', () => {
    expect(decide(['host a,d , e "x,y",u all trust'])).toBe('trust')
    expect(decide(['host "all" all all trust'])).toBeUndefined()
    expect(decide(['host "all" all all trust'], { database: 'all' })).toBe('trust')
    expect(decide(['host sameuser all all trust'])).toBeUndefined()
    expect(decide(['host sameuser all all trust'], { database: 'u' })).toBe('trust')
    expect(decide(['host replication all all trust'], { database: 'replication' })).toBeUndefined()
    expect(decide(['host "replication" all all trust'], { database: 'replication' })).toBe('trust')
    expect(decide(['host d "U" all trust'], { user: 'U' })).toBe('trust')
    expect(decide(['host d "U" all trust'])).toBeUndefined()
  })

  test('a line goes on behind a backslash', () => {
    expect(decide(['host d \\', ' u all \\', ' trust'])).toBe('trust')
  })

  test('options of certificates', () => {
    const [rule] = parseHba(['hostssl all all all scram-sha-256 clientcert=verify-full']).rules
    expect(rule?.clientCertificate).toBe('verify-full')
  })

  test.each([
    ['host all +staff all md5', '+staff: membership in roles is not known here; name the users'],
    ['host all @file all md5', '@file: names from files are not supported'],
    ['host samerole all all md5', 'samerole: membership in roles is not known here'],
    ['host /^a all all md5', '/^a: regular expressions are not supported'],
    ['host all all db.example md5', 'db.example: only addresses are supported'],
    ['host all all 10.0.0.0/33 md5', '10.0.0.0/33: the length of the network does not fit'],
    ['host all all 10.0.0.0 md5', 'the mask does not fit the address'],
    ['host all all 300.0.0.0/8 md5', '300.0.0.0/8: only addresses are supported'],
    ['host all all all ldap', 'method ldap is not supported'],
    ['local all all peer', 'method peer is not supported'],
    ['host all all all cert', 'method cert needs hostssl'],
    ['host all all all md5 clientcert=verify-ca', 'clientcert needs hostssl'],
    ['hostssl all all all md5 map=x', 'option map is not supported'],
    ['hostgssenc all all all md5', 'type hostgssenc is not supported'],
    ['host all "open all md5', 'an open quote'],
    ['host all', 'there is no user'],
    ['host all all all', 'there is no method'],
  ])('%s is refused by name', (line, message) => {
    const { rules, problems } = parseHba(['', line])
    expect(rules).toEqual([])
    expect(problems).toHaveLength(1)
    expect(problems[0]?.line).toBe(2)
    expect(problems[0]?.message).toContain(message)
  })
})

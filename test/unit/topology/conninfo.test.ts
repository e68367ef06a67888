import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  type ConninfoEnvironment,
  conninfoValues,
  parseConninfo,
} from '../../../src/topology/conninfo.js'
import { hidePassword } from '../../../src/topology/conninfo-uri.js'
import { passwordFromText } from '../../../src/topology/pgpass.js'

const environment = (
  variables: Record<string, string> = {},
  files: Record<string, string> = {},
): ConninfoEnvironment => ({
  variables,
  userName: 'me',
  homeDirectory: '/home/me',
  defaultHost: '/var/run/postgresql',
  readFile: (path) => files[path],
})

const failure = (text: string, env = environment()): string => {
  try {
    parseConninfo(text, env)
    return 'no error'
  } catch (error) {
    return (error as Error).message
  }
}

test('texts and URIs give what libpq 18 gives', () => {
  const lines = readFileSync('fixtures/bench/conninfo-libpq18.jsonl', 'utf8').trim().split('\n')
  expect(lines.length).toBeGreaterThan(400)
  for (const line of lines) {
    const { text, libpq } = JSON.parse(line) as { text: string; libpq: Record<string, string> }
    let mine: Record<string, string>
    try {
      mine = conninfoValues(text)
    } catch (error) {
      mine = { error: (error as Error).message }
    }
    expect({ text, ...mine }).toEqual({ text, ...libpq })
  }
})

describe('hosts', () => {
  test('L1, L2: hosts and ports pair by position', () => {
    const { hosts } = parseConninfo('host=a,b,c port=1,2,3', environment())
    expect(hosts).toEqual([
      { host: 'a', port: 1 },
      { host: 'b', port: 2 },
      { host: 'c', port: 3 },
    ])
  })

  test('one port serves all hosts; hostaddr keeps the name', () => {
    const { hosts } = parseConninfo('host=a,b hostaddr=1.1.1.1,2.2.2.2 port=7', environment())
    expect(hosts).toEqual([
      { host: 'a', hostaddr: '1.1.1.1', port: 7 },
      { host: 'b', hostaddr: '2.2.2.2', port: 7 },
    ])
  })

  test('an empty host is the default socket', () => {
    expect(parseConninfo('host=,b port=,2', environment()).hosts).toEqual([
      { host: '/var/run/postgresql', port: 5432 },
      { host: 'b', port: 2 },
    ])
  })

  test.each([
    ['host=a,b,c port=1,2', 'could not match 2 port numbers to 3 hosts'],
    ['host=a hostaddr=1.2.3.4,4.4.4.4', 'could not match 1 host names to 2 hostaddr values'],
    ['host=a port=99999', 'invalid port number: "99999"'],
    ['host=a port=x', 'invalid integer value "x" for connection option "port"'],
    ['connect_timeout=abc', 'invalid integer value "abc" for connection option "connect_timeout"'],
    ['target_session_attrs=weird', 'invalid target_session_attrs value: "weird"'],
    ['load_balance_hosts=foo', 'invalid load_balance_hosts value: "foo"'],
    ['sslmode=x', 'invalid sslmode value: "x"'],
    ['requirepeer=bob', 'connection option requirepeer=bob is not supported'],
  ])('%s is refused', (text, message) => expect(failure(text)).toBe(message))
})

describe('defaults', () => {
  test('text wins over service, service over environment', () => {
    const env = environment(
      { PGSERVICE: 'prod', PGHOST: 'envhost', PGPORT: '9', PGUSER: 'envuser' },
      { '/home/me/.pg_service.conf': '# x\n[other]\nhost=o\n[prod]\nhost=svc\ndbname=d\nport=8\n' },
    )
    const found = parseConninfo('port=7', env)
    expect(found.hosts).toEqual([{ host: 'svc', port: 7 }])
    expect([found.user, found.database]).toEqual(['envuser', 'd'])
  })

  test('of a keyword that a service names twice the first counts', () => {
    const files = { '/home/me/.pg_service.conf': '[prod]\nhost=one\nhost=two\n' }
    expect(parseConninfo('service=prod', environment({}, files)).hosts).toEqual([
      { host: 'one', port: 5432 },
    ])
  })

  test('a missing service is an error', () => {
    expect(failure('service=x')).toContain('definition of service "x" not found')
  })

  test('the database is named after the user; a bare word is a database', () => {
    expect(parseConninfo('user=u', environment()).database).toBe('u')
    expect(parseConninfo('sales', environment()).database).toBe('sales')
  })

  test('L4: load_balance_hosts is disable when absent', () => {
    expect(parseConninfo('', environment()).loadBalanceHosts).toBe('disable')
  })

  test('a password comes from .pgpass per host, and the default socket counts as localhost', () => {
    const env = environment(
      {},
      { '/home/me/.pgpass': 'a:1:*:*:first\nb:*:d:u:se\\:c\\\\ret\nlocalhost:*:*:*:sock\n' },
    )
    const hosts = parseConninfo('host=a,b,,c port=1 dbname=d user=u', env).hosts
    expect(hosts.map((host) => host.password)).toEqual(['first', 'se:c\\ret', 'sock', undefined])
  })

  test('an escaped star in .pgpass is no wildcard', () => {
    const query = { host: 'h', port: '1', database: 'd', user: 'u' }
    expect(passwordFromText('\\*:*:*:*:no\nh:1:d:u:yes', query)).toBe('yes')
    expect(passwordFromText('h:1:d:u:\n*:*:*:*:next', query)).toBe('next')
  })
})

test('passwords are hidden in messages', () => {
  expect(hidePassword('postgres://u:secret@h/d')).toBe('postgres://u:***@h/d')
  expect(hidePassword("host=a password='se cret' user=u")).toBe('host=a password=*** user=u')
  expect(failure('postgres://u:s%zz@h/d')).not.toContain('s%zz')
  expect(failure('postgres://u:secret@[::1')).not.toContain('secret')
})

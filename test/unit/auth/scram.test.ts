import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { saslprep } from '../../../src/auth/saslprep.js'
import { ScramClient } from '../../../src/auth/scram-client.js'
import {
  prepareScramKeys,
  ScramServer,
  type ScramServerOptions,
} from '../../../src/auth/scram-server.js'
import {
  formatScramVerifier,
  makeScramVerifier,
  parseScramVerifier,
} from '../../../src/auth/scram-verifier.js'

const fixture = JSON.parse(
  readFileSync(
    join(import.meta.dirname, '../../../fixtures/auth/postgresql-15-verifiers.json'),
    'utf8',
  ),
) as { password: string; verifier: string }[]

/** The whole exchange; gives the client, or throws what broke. */
async function login(client: ScramClient, options: ScramServerOptions): Promise<ScramClient> {
  const server = new ScramServer(options)
  const final = await client.continue(server.first(client.first()))
  client.finish(server.final(final))
  return client
}

const text = (message: string) => Buffer.from(message)

describe('SASLprep and verifiers', () => {
  it(`make what PostgreSQL stores, for ${fixture.length} awkward passwords`, () => {
    for (const { password, verifier } of fixture) {
      const parsed = parseScramVerifier(verifier)
      expect(parsed, verifier).toBeDefined()
      const ours = makeScramVerifier(password, {
        salt: parsed?.salt as Buffer,
        iterations: parsed?.iterations as number,
      })
      expect(ours, JSON.stringify(password)).toBe(verifier)
    }
  })

  it('maps, normalises, and leaves alone what is prohibited (RFC 4013, section 3)', () => {
    expect(saslprep('I\u00adX')).toBe('IX')
    expect(saslprep('user')).toBe('user')
    expect(saslprep('\u00aa')).toBe('a')
    expect(saslprep('\u2168')).toBe('IX')
    expect(saslprep('\u0007\u00e9')).toBe('\u0007\u00e9')
    expect(saslprep('\u06271')).toBe('\u06271')
    expect(saslprep('trailing ')).toBe('trailing ')
  })

  it('read back what they wrote, and nothing else', () => {
    const made = makeScramVerifier('secret')
    const parsed = parseScramVerifier(made)
    expect(parsed?.iterations).toBe(4096)
    expect(parsed?.salt.length).toBe(16)
    expect(parsed && formatScramVerifier(parsed)).toBe(made)
    expect(makeScramVerifier('secret')).not.toBe(made)
    for (const bad of [
      'secret',
      'md5acbd18db4cc2f85cedef654fccc4a4d8',
      made.replace('4096', '0'),
      made.replace('4096', '9999999999'),
      made.slice(0, -1),
      made.replace('SHA-256', 'SHA-1'),
      `${made}$`,
    ]) {
      expect(parseScramVerifier(bad), bad).toBeUndefined()
    }
  })
})

describe('the exchange', () => {
  it('answers the vector of RFC 7677', () => {
    const verifier = makeScramVerifier('pencil', {
      salt: Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64'),
    })
    const server = new ScramServer({
      user: 'user',
      secrets: [verifier],
      nonce: () => '%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0',
    })
    expect(server.first(text('n,,n=user,r=rOprNGfwEbeRWgbNEkqO')).toString()).toBe(
      'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096',
    )
    expect(
      server
        .final(
          text(
            'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=',
          ),
        )
        .toString(),
    ).toBe('v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=')
  })

  it('proves both sides, with clear passwords and verifiers', async () => {
    const client = await login(new ScramClient('pencil '), { user: 'u', secrets: ['pencil '] })
    expect(client.finished).toBe(true)
    await login(new ScramClient('x'), { user: 'u', secrets: [makeScramVerifier('x')] })
    await login(new ScramClient('Ⅸ'), { user: 'u', secrets: ['IX'] })
  })

  it('tries every password, and clear ones beside a verifier', async () => {
    const secrets = ['one', makeScramVerifier('two'), 'three']
    for (const password of ['one', 'two', 'three']) {
      await login(new ScramClient(password), { user: 'u', secrets })
    }
    await expect(login(new ScramClient('four'), { user: 'u', secrets })).rejects.toMatchObject({
      code: 'AUTH_FAILED',
      sqlstate: '28P01',
      severity: 'FATAL',
      message: 'password authentication failed for user "u"',
    })
  })

  it('does not tell an unknown user from a wrong password', async () => {
    const saltSecret = Buffer.from('shared by the workers')
    const first = (secrets: string[], user = 'ghost') =>
      new ScramServer({ user, secrets, saltSecret, nonce: () => 'N' })
        .first(text('n,,n=,r=abc'))
        .toString()
    expect(first([])).toMatch(/^r=abcN,s=[A-Za-z0-9+/]{22}==,i=4096$/)
    expect(first([])).toBe(first([]))
    expect(first([])).toBe(first(['known']))
    expect(first([], 'other')).not.toBe(first([]))
    await expect(
      login(new ScramClient('any'), { user: 'ghost', secrets: [] }),
    ).rejects.toMatchObject({ code: 'AUTH_FAILED' })
  })

  it('takes the flags n and y, and p only with a binding of its own', async () => {
    const secrets = ['s']
    await login(new ScramClient('s', { couldBind: true }), { user: 'u', secrets })
    await expect(
      login(new ScramClient('s', { couldBind: true }), {
        user: 'u',
        secrets,
        offeredBinding: true,
      }),
    ).rejects.toMatchObject({ code: 'AUTH_BINDING_DOWNGRADE' })
    const bind = (bytes: string) => ({ type: 'tls-server-end-point', bytes: text(bytes) }) as const
    await expect(
      login(new ScramClient('s', { channelBinding: bind('a') }), { user: 'u', secrets }),
    ).rejects.toMatchObject({ code: 'AUTH_SCRAM_MALFORMED' })
    const bound = new ScramClient('s', { channelBinding: bind('a') })
    expect(bound.mechanism).toBe('SCRAM-SHA-256-PLUS')
    await login(bound, { user: 'u', secrets, channelBinding: bind('a') })
    await expect(
      login(new ScramClient('s', { channelBinding: bind('a') }), {
        user: 'u',
        secrets,
        channelBinding: bind('b'),
      }),
    ).rejects.toThrow('channel binding does not match')
    await expect(
      login(new ScramClient('s'), { user: 'u', secrets, channelBinding: bind('a') }),
    ).rejects.toThrow('without channel binding')
  })

  it('refuses malformed messages of a client, each as 08P01 or 0A000', () => {
    const server = () => new ScramServer({ user: 'u', secrets: ['s'], nonce: () => 'N' })
    for (const bad of [
      '',
      'n',
      'n,,',
      'n,,n=',
      'n,,r=abc',
      'n,,n=,r=',
      'n,,n=,r=a b',
      'n,,n=,r=abc\0',
      'x,,n=,r=abc',
      'n,,n=,r=abc,zz',
    ]) {
      expect(() => server().first(text(bad)), bad).toThrow(/^malformed SCRAM message/)
    }
    expect(() => server().first(text('n,a=root,n=,r=abc'))).toThrow('authorization identity')
    expect(() => server().first(text('n,,m=x,n=,r=abc'))).toThrow('mandatory extension')
    expect(() => server().final(text('c=biws,r=abcN,p='))).toThrow('out of order')
    for (const bad of [
      '',
      'c=biws',
      'c=biws,r=abcN',
      'c=biws,r=abcN,p=short',
      'c=eSws,r=abcN,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=',
      'c=biws,r=other,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=',
      'c=biws,r=abcN,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=,x=1',
    ]) {
      const one = server()
      one.first(text('n,,n=,r=abc'))
      expect(() => one.final(text(bad)), bad).toThrow(/^malformed SCRAM message/)
    }
    const extended = server()
    expect(extended.first(text('n,,n=,r=abc,x=1')).toString()).toMatch(/^r=abcN,s=/)
  })

  it('a client refuses a server that is not the one it seems', async () => {
    const first = async (message: string) => {
      const client = new ScramClient('s', { nonce: () => 'mine' })
      return client.continue(text(message))
    }
    for (const bad of [
      'r=other,s=QUJD,i=4096',
      'r=mine,s=QUJD,i=4096',
      'r=mineN,s=,i=4096',
      'r=mineN,s=!!,i=4096',
      'r=mineN,s=QUJD,i=0',
      'r=mineN,s=QUJD,i=99999999',
      'r=mineN,s=QUJD,i=-1',
      'r=mineN,s=QUJD',
    ]) {
      await expect(first(bad), bad).rejects.toMatchObject({ code: 'AUTH_SCRAM_MALFORMED' })
    }
    const client = new ScramClient('s')
    expect(() => client.finish(text('v=AAAA'))).toThrow('out of order')
    const server = new ScramServer({ user: 'u', secrets: ['s'] })
    await client.continue(server.first(client.first()))
    expect(() => client.finish(text('v=AAAA'))).toThrow('did not prove')
    expect(() => client.finish(text('e=other-error'))).toThrow('other-error')
    expect(client.finished).toBe(false)
  })
})

describe('keys instead of a password', () => {
  it('that a client has shown log in by the same verifier, and by no other', async () => {
    const verifier = makeScramVerifier('secret')
    const server = new ScramServer({ user: 'u', secrets: [verifier] })
    const client = new ScramClient('secret')
    expect(server.proved).toBeUndefined()
    server.final(await client.continue(server.first(client.first())))
    const keys = server.proved
    expect(keys).toBeDefined()
    if (!keys) return
    const again = await login(new ScramClient(keys), { user: 'u', secrets: [verifier] })
    expect(again.finished).toBe(true)
    await expect(
      login(new ScramClient(keys), { user: 'u', secrets: [makeScramVerifier('secret')] }),
    ).rejects.toMatchObject({ code: 'AUTH_KEYS_FOREIGN' })
  })

  it('are not shown by a proof that is wrong', async () => {
    const server = new ScramServer({ user: 'u', secrets: [makeScramVerifier('secret')] })
    const client = new ScramClient('wrong')
    const final = await client.continue(server.first(client.first()))
    expect(() => server.final(final)).toThrow(/password authentication failed/)
    expect(server.proved).toBeUndefined()
  })

  it('of passwords that were prepared make the first login no slower than that of a stranger', async () => {
    const options = { user: 'prepared', secrets: ['a password of nobody else'] }
    await prepareScramKeys(options)
    const timed = (make: ScramServerOptions) => {
      const from = performance.now()
      new ScramServer(make)
      return performance.now() - from
    }
    const unprepared = timed({ user: 'another', secrets: ['a password of nobody else'] })
    expect(timed(options)).toBeLessThan(unprepared / 2)
  })
})

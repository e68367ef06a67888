/** Known answers: AWS's published examples of Signature Version 4. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  authorization,
  canonicalRequest,
  presignedQuery,
  rdsToken,
  signature,
  stringToSign,
  uriEncode,
} from '../../../src/auth/aws-signature.js'

/** Of AWS's test suite and of its documentation. */
const suite = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
const documented = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}

describe('D29: AWS Signature Version 4', () => {
  const scope = {
    region: 'us-east-1',
    service: 'service',
    at: new Date('2015-08-30T12:36:00Z'),
  }
  const get = {
    method: 'GET',
    host: 'example.amazonaws.com',
    path: '/',
    query: {},
    headers: { 'X-Amz-Date': '20150830T123600Z' },
  }

  test('get-vanilla of the test suite, step by step', () => {
    const canonical = canonicalRequest(get)
    expect(canonical).toBe(
      'GET\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    )
    const text = stringToSign(canonical, scope)
    expect(text).toBe(
      'AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/service/aws4_request\nbb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63',
    )
    expect(signature(text, suite.secretAccessKey, scope)).toBe(
      '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
    )
    expect(authorization(get, suite, scope)).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
    )
  })

  test('get-vanilla-query-order-key-case and post-vanilla of the test suite', () => {
    const ordered = authorization(
      { ...get, query: { Param2: 'value2', Param1: 'value1' } },
      suite,
      scope,
    )
    expect(ordered).toContain(
      'Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
    )
    const posted = authorization({ ...get, method: 'POST' }, suite, scope)
    expect(posted).toContain(
      'Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
    )
  })

  test('the presigned address of the documentation of S3', () => {
    const query = presignedQuery(
      {
        method: 'GET',
        host: 'examplebucket.s3.amazonaws.com',
        path: '/test.txt',
        query: {},
        payloadHash: 'UNSIGNED-PAYLOAD',
      },
      documented,
      { region: 'us-east-1', service: 's3', at: new Date('2013-05-24T00:00:00Z') },
      86_400,
    )
    expect(query).toBe(
      'X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
    )
  })

  test('a token for RDS is that address without its scheme, for a quarter of an hour', () => {
    const place = { host: 'db.example.rds.amazonaws.com', port: 5432, user: 'jane doe+x' }
    const at = new Date('2024-01-02T03:04:05Z')
    const keys = { ...suite, sessionToken: 'session/token=' }
    const token = rdsToken(place, keys, { region: 'eu-west-1', at })
    const url = new URL(`https://${token}`)
    expect(url.host).toBe('db.example.rds.amazonaws.com:5432')
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      Action: 'connect',
      DBUser: 'jane doe+x',
      'X-Amz-Credential': 'AKIDEXAMPLE/20240102/eu-west-1/rds-db/aws4_request',
      'X-Amz-Date': '20240102T030405Z',
      'X-Amz-Expires': '900',
      'X-Amz-Security-Token': 'session/token=',
      'X-Amz-SignedHeaders': 'host',
    })
    // Signed by hand, from what the address itself says.
    const signed = url.searchParams.get('X-Amz-Signature')
    const [unsigned] = token.slice(token.indexOf('?') + 1).split('&X-Amz-Signature=')
    const empty = createHash('sha256').digest('hex')
    const canonical = `GET\n/\n${unsigned}\nhost:${url.host}\n\nhost\n${empty}`
    const rds = { region: 'eu-west-1', service: 'rds-db', at }
    expect(signature(stringToSign(canonical, rds), keys.secretAccessKey, rds)).toBe(signed)
    expect(token).toContain('DBUser=jane%20doe%2Bx')
  })

  test('every byte that is not unreserved is encoded', () => {
    expect(uriEncode("a~-_.b c/é!'()*")).toBe('a~-_.b%20c%2F%C3%A9%21%27%28%29%2A')
  })
})

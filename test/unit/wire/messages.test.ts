import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { EngineError, engineError } from '../../../src/errors/engine-error.js'
import { decodeAuthentication, encodeAuthentication } from '../../../src/wire/auth-messages.js'
import {
  decodeBackendKeyData,
  decodeDataRow,
  decodeEmpty,
  decodeReadyForQuery,
  decodeRowDescription,
  encodeEmptyBackend,
} from '../../../src/wire/backend-messages.js'
import { decodeErrorFields, encodeErrorResponse } from '../../../src/wire/error-response.js'
import { FrameReader } from '../../../src/wire/frame-reader.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import {
  decodeBind,
  decodeParse,
  encodeBind,
  encodeEmptyFrontend,
  encodeQuery,
} from '../../../src/wire/frontend-messages.js'
import {
  decodeStartupPacket,
  looksLikeTls,
  negotiate,
  StartupReader,
} from '../../../src/wire/startup-messages.js'
import { PROTOCOL_3_2 } from '../../../src/wire/tags.js'

const conversation = JSON.parse(
  readFileSync(
    join(import.meta.dirname, '../../../fixtures/wire/libpq-18-conversation.json'),
    'utf8',
  ),
) as { chunks: { from: 'client' | 'server'; hex: string }[] }

/** Bodies of the real session with a tag, in order. */
function bodies(from: 'client' | 'server', tag: string): Buffer[] {
  const found: Buffer[] = []
  const reader = new FrameReader((code, buffer, start, end) => {
    if (code === tag.charCodeAt(0)) found.push(Buffer.from(buffer.subarray(start + 5, end)))
  })
  const mine = conversation.chunks.filter((chunk) => chunk.from === from)
  // The client's first two packets have no tag; the server's first byte answers SSLRequest.
  const bytes = Buffer.concat(mine.map((chunk) => Buffer.from(chunk.hex, 'hex')))
  reader.push(bytes.subarray(from === 'client' ? 8 + 58 : 1))
  return found
}

const body = (...bytes: number[]) => Buffer.from(bytes)

describe('messages of a real session', () => {
  it('D51, D52: are read as they were meant', () => {
    expect(decodeRowDescription(bodies('server', 'T')[0] as Buffer)[1]).toEqual({
      name: 'text',
      tableOid: 0,
      columnNumber: 0,
      typeOid: 25,
      typeSize: -1,
      typeModifier: -1,
      format: 0,
    })
    expect(decodeDataRow(bodies('server', 'D')[0] as Buffer)).toEqual([
      Buffer.from('1'),
      null,
      Buffer.from("a'b"),
      Buffer.from('tab\there'),
    ])
    expect(decodeBackendKeyData(bodies('server', 'K')[0] as Buffer).secret.length).toBe(4)
    expect(decodeErrorFields(bodies('server', 'E')[0] as Buffer)).toMatchObject({
      S: 'ERROR',
      C: '42P01',
      M: 'relation "nowhere" does not exist',
      P: '15',
    })
    expect(decodeParse(bodies('client', 'P')[0] as Buffer)).toEqual({
      name: '',
      sql: 'select $1::int8, $2::text',
      parameterTypes: [],
    })
    expect(decodeBind(bodies('client', 'B')[0] as Buffer)).toEqual({
      portal: '',
      statement: '',
      formats: [],
      values: [Buffer.from('42'), null],
      resultFormats: [1],
    })
    expect(decodeAuthentication(bodies('server', 'R')[0] as Buffer)).toEqual({
      kind: 'sasl',
      mechanisms: ['SCRAM-SHA-256'],
    })
  })
})

describe('decoders', () => {
  it('refuse what PostgreSQL refuses, each by its code', () => {
    expect(() => decodeReadyForQuery(body(0x58))).toThrow('invalid status: 88')
    expect(() => decodeDataRow(body(0, 2, 0, 0, 0, 1))).toThrow('ends before its field')
    expect(() => decodeDataRow(body(0, 1, 0xff, 0xff, 0xff, 0xfe))).toThrow('invalid column: -2')
    expect(() => decodeEmpty('1', body(0))).toThrow('1 bytes too many')
    expect(() => decodeBackendKeyData(body(0, 0, 0, 1, 1, 2, 3))).toThrow('cancel key length: 3')
    expect(() => decodeAuthentication(body(0, 0, 0, 99))).toThrow('invalid method: 99')
    const noZero = Buffer.from('select 1')
    expect(() => decodeParse(noZero)).toThrow('ends before its field "name"')
    const twoFormats = new FrameWriter()
    encodeBind(twoFormats, {
      portal: '',
      statement: '',
      formats: [0, 1],
      values: [null],
      resultFormats: [],
    })
    expect(() => decodeBind(twoFormats.take().subarray(5))).toThrow('2 for 1 parameters')
  })

  it('a count of 65,535 costs nothing before its bytes are there', () => {
    const start = performance.now()
    for (let i = 0; i < 1000; i++) {
      expect(() => decodeDataRow(body(0xff, 0xff))).toThrow('column count')
    }
    expect(performance.now() - start).toBeLessThan(1000)
  })
})

describe('encoders', () => {
  it('refuse a zero byte in a string and leave the frames before it whole', () => {
    const writer = new FrameWriter()
    encodeEmptyFrontend(writer, 'sync')
    expect(() => encodeQuery(writer, 'select 1\0; drop table t')).toThrow('zero byte')
    encodeEmptyBackend(writer, 'noData')
    expect(writer.take()).toEqual(body(0x53, 0, 0, 0, 4, 0x6e, 0, 0, 0, 4))
  })

  it('refuse more values than a count can say', () => {
    const values = new Array<null>(65_536).fill(null)
    const bind = { portal: '', statement: '', formats: [], values, resultFormats: [] }
    expect(() => encodeBind(new FrameWriter(), bind)).toThrow('invalid count: 65536')
  })

  it('write an error of ours with its code in R, and a notice by its tag', () => {
    const writer = new FrameWriter()
    const error = engineError('WIRE_UNEXPECTED', { tag: 'd', where: 'here' }, { position: 7 })
    encodeErrorResponse(writer, error)
    encodeErrorResponse(writer, error, 'notice')
    const bytes = writer.take()
    const length = bytes.readInt32BE(1) + 1
    expect(String.fromCharCode(bytes[0] as number, bytes[length] as number)).toBe('EN')
    expect({ ...decodeErrorFields(bytes.subarray(5, length)) }).toEqual({
      S: 'ERROR',
      V: 'ERROR',
      C: '08P01',
      M: 'message "d" is not allowed here',
      P: '7',
      R: 'WIRE_UNEXPECTED',
    })
    expect(decodeErrorFields(bytes.subarray(length + 5))['S']).toBe('NOTICE')
  })

  it('survive a zero byte in an error text', () => {
    const writer = new FrameWriter()
    encodeErrorResponse(
      writer,
      new EngineError('INTERNAL', 'a\0b', { sqlstate: 'XX000', message: '' }, {}),
    )
    expect(decodeErrorFields(writer.take().subarray(5))['M']).toBe('a\ufffdb')
  })

  it('write Authentication as PostgreSQL does', () => {
    const writer = new FrameWriter()
    encodeAuthentication(writer, { kind: 'sasl', mechanisms: ['SCRAM-SHA-256'] })
    expect(writer.take().toString('latin1')).toBe('R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0')
  })
})

describe('startup', () => {
  const packet = (text: string) => Buffer.from(text, 'latin1')

  it('reads versions, options and the last of two equal names', () => {
    expect(decodeStartupPacket(packet('\0\x03\0\x02user\0a\0_pq_.x\0on\0user\0b\0\0'))).toEqual({
      kind: 'startup',
      major: 3,
      minor: 2,
      parameters: new Map([
        ['user', 'b'],
        ['_pq_.x', 'on'],
      ]),
    })
    expect(decodeStartupPacket(packet('\0\x02\0\0rest'))).toEqual({
      kind: 'unsupported',
      major: 2,
      minor: 0,
    })
    expect(() => decodeStartupPacket(packet('\0\x03\0\0user\0a\0'))).toThrow('parameter')
    expect(() => decodeStartupPacket(packet('\0\x03\0\0user\0a\0\0x'))).toThrow('too many')
    expect(looksLikeTls(0x16)).toBe(true)
  })

  it('negotiates the minor version and names unknown options', () => {
    const startup = (minor: number, names: string[]) => ({
      kind: 'startup' as const,
      major: 3,
      minor,
      parameters: new Map(names.map((name) => [name, 'on'])),
    })
    expect(negotiate(startup(0, ['user']), 2)).toBeUndefined()
    expect(negotiate(startup(2, ['user']), 2)).toBeUndefined()
    expect(negotiate(startup(9999, []), 2)).toEqual({
      version: PROTOCOL_3_2,
      unknownOptions: [],
    })
    expect(negotiate(startup(0, ['_pq_.a', '_pq_.b']), 2, ['_pq_.b'])).toEqual({
      version: 196_608,
      unknownOptions: ['_pq_.a'],
    })
  })

  it('refuses lengths that no startup packet has, before their bytes come', () => {
    for (const length of [0, 4, 7, 10_001, 0x47455420, -1]) {
      const claim = Buffer.alloc(4)
      claim.writeInt32BE(length)
      expect(() => new StartupReader().push(claim)).toThrow(`invalid length ${length}`)
    }
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isEngineError } from '../../src/errors/engine-error.js'
import * as auth from '../../src/wire/auth-messages.js'
import * as server from '../../src/wire/backend-messages.js'
import * as copy from '../../src/wire/copy-messages.js'
import * as errors from '../../src/wire/error-response.js'
import { FrameWriter } from '../../src/wire/frame-writer.js'
import * as client from '../../src/wire/frontend-messages.js'
import * as startup from '../../src/wire/startup-messages.js'
import { traceFrame, traceStartup } from '../../src/wire/trace.js'

const text = fc
  .string({ unit: 'binary' })
  .map((s) => Buffer.from(s.replaceAll('\0', '')).toString())
const word = text.filter((s) => s !== '')
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))
const value = fc.option(bytes)
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const oid = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const int16 = fc.integer({ min: -(2 ** 15), max: 2 ** 15 - 1 })
const few = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 6 })
const key = fc.uint8Array({ minLength: 4, maxLength: 256 }).map((array) => Buffer.from(array))

/** name → an arbitrary message, its encoder and its decoder. */
interface Codec {
  arbitrary: fc.Arbitrary<unknown>
  encode: (writer: FrameWriter, message: never) => void
  decode: (body: Buffer) => unknown
  tagged?: false
}
const codec = <T>(
  arbitrary: fc.Arbitrary<T>,
  encode: (writer: FrameWriter, message: T) => void,
  decode: (body: Buffer) => unknown,
): Codec => ({ arbitrary, encode: encode as Codec['encode'], decode })

const values = few(value)
const bindArbitrary = values.chain((parameters) =>
  fc.record({
    portal: text,
    statement: text,
    formats: fc.oneof(
      fc.constant([]),
      fc.array(int16, { minLength: 1, maxLength: 1 }),
      fc.array(int16, { minLength: parameters.length, maxLength: parameters.length }),
    ),
    values: fc.constant(parameters),
    resultFormats: few(int16),
  }),
)
const named = fc.record({
  kind: fc.constantFrom('statement' as const, 'portal' as const),
  name: text,
})
const letters = fc.constantFrom(...'SVCMDHPpqWstcdnFLR')
const startupParameters = fc
  .dictionary(word, text, { maxKeys: 5, noNullPrototype: true })
  .map((record) => new Map(Object.entries(record)))

const codecs: Record<string, Codec> = {
  Authentication: codec<auth.Authentication>(
    fc.oneof(
      fc.record({ kind: fc.constantFrom('ok' as const, 'cleartext' as const, 'sspi' as const) }),
      fc.record({
        kind: fc.constant('md5' as const),
        salt: fc.uint8Array({ minLength: 4, maxLength: 4 }).map((a) => Buffer.from(a)),
      }),
      fc.record({ kind: fc.constant('sasl' as const), mechanisms: few(word) }),
      fc.record({
        kind: fc.constantFrom(
          'saslContinue' as const,
          'saslFinal' as const,
          'gssContinue' as const,
        ),
        bytes,
      }),
    ),
    auth.encodeAuthentication,
    auth.decodeAuthentication,
  ),
  PasswordMessage: codec(text, auth.encodePasswordMessage, auth.decodePasswordMessage),
  SASLInitialResponse: codec(
    fc.record({ mechanism: text, response: value }),
    auth.encodeSaslInitialResponse,
    auth.decodeSaslInitialResponse,
  ),
  SASLResponse: codec(bytes, auth.encodeSaslResponse, auth.decodeSaslResponse),
  BackendKeyData: codec(
    fc.record({ processId: int32, secret: key }),
    server.encodeBackendKeyData,
    server.decodeBackendKeyData,
  ),
  CommandComplete: codec(text, server.encodeCommandComplete, server.decodeCommandComplete),
  DataRow: codec(values, server.encodeDataRow, server.decodeDataRow),
  FunctionCallResponse: codec(
    value,
    server.encodeFunctionCallResponse,
    server.decodeFunctionCallResponse,
  ),
  NegotiateProtocolVersion: codec(
    fc.record({ version: int32, unknownOptions: few(text) }),
    server.encodeNegotiateProtocolVersion,
    server.decodeNegotiateProtocolVersion,
  ),
  NotificationResponse: codec(
    fc.record({ processId: int32, channel: text, payload: text }),
    server.encodeNotificationResponse,
    server.decodeNotificationResponse,
  ),
  ParameterDescription: codec(
    few(oid),
    server.encodeParameterDescription,
    server.decodeParameterDescription,
  ),
  ParameterStatus: codec(
    fc.record({ name: text, value: text }),
    (writer, message) => server.encodeParameterStatus(writer, message.name, message.value),
    server.decodeParameterStatus,
  ),
  ReadyForQuery: codec(
    fc.constantFrom(0x49, 0x54, 0x45),
    server.encodeReadyForQuery,
    server.decodeReadyForQuery,
  ),
  RowDescription: codec(
    few(
      fc.record({
        name: text,
        tableOid: oid,
        columnNumber: int16,
        typeOid: oid,
        typeSize: int16,
        typeModifier: int32,
        format: int16,
      }),
    ),
    server.encodeRowDescription,
    server.decodeRowDescription,
  ),
  ErrorResponse: codec<errors.ErrorFields>(
    fc.dictionary(letters, text).map((fields) => Object.assign(Object.create(null), fields)),
    errors.encodeErrorResponse,
    errors.decodeErrorFields,
  ),
  CopyInResponse: codec(
    fc.record({ format: fc.constantFrom(0, 1), columnFormats: few(int16) }),
    (writer, message) => copy.encodeCopyResponse(writer, 'copyInResponse', message),
    copy.decodeCopyResponse,
  ),
  CopyData: codec(bytes, copy.encodeCopyData, copy.decodeCopyData),
  CopyFail: codec(text, copy.encodeCopyFail, copy.decodeCopyFail),
  Bind: codec(bindArbitrary, client.encodeBind, client.decodeBind),
  Close: codec(named, client.encodeClose, client.decodeClose),
  Describe: codec(named, client.encodeDescribe, client.decodeDescribe),
  Execute: codec(
    fc.record({ portal: text, maxRows: int32 }),
    client.encodeExecute,
    client.decodeExecute,
  ),
  FunctionCall: codec(
    fc.record({ functionOid: oid, formats: few(int16), values, resultFormat: int16 }),
    client.encodeFunctionCall,
    client.decodeFunctionCall,
  ),
  Parse: codec(
    fc.record({ name: text, sql: text, parameterTypes: few(oid) }),
    client.encodeParse,
    client.decodeParse,
  ),
  Query: codec(text, client.encodeQuery, client.decodeQuery),
  StartupMessage: {
    ...codec(
      fc.record({
        kind: fc.constant('startup' as const),
        major: fc.constant(3),
        minor: fc.integer({ min: 0, max: 65_535 }),
        parameters: startupParameters,
      }),
      startup.encodeStartupMessage,
      startup.decodeStartupPacket,
    ),
    tagged: false,
  },
  CancelRequest: {
    ...codec(
      fc.record({ kind: fc.constant('cancel' as const), processId: int32, secret: key }),
      startup.encodeCancelRequest,
      startup.decodeStartupPacket,
    ),
    tagged: false,
  },
}

const empty: Record<string, (writer: FrameWriter) => void> = {
  SSLRequest: startup.encodeSslRequest,
  GSSENCRequest: startup.encodeGssencRequest,
}

const header = (one: Codec) => (one.tagged === false ? 4 : 5)

function encoded(one: Codec, message: unknown): Buffer {
  const writer = new FrameWriter(1)
  one.encode(writer, message as never)
  return writer.take()
}

/** Runs `read` on hostile bytes: a result or a WIRE_ error. */
function readsOrRefuses(read: () => unknown): void {
  try {
    read()
  } catch (error) {
    if (isEngineError(error) && error.code.startsWith('WIRE_')) return
    throw error
  }
}

describe('D30, D51, D52: messages', () => {
  for (const [name, one] of Object.entries(codecs)) {
    it(`${name}: decode of encode is the identity, and the length is right`, () => {
      fc.assert(
        fc.property(one.arbitrary, (message) => {
          const frame = encoded(one, message)
          expect(frame.readInt32BE(header(one) - 4)).toBe(frame.length - header(one) + 4)
          expect(one.decode(frame.subarray(header(one)))).toEqual(message)
        }),
      )
    })

    it(`${name}: mutated and arbitrary bytes give a message or a WIRE_ error`, () => {
      const mutations = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), {
        minLength: 1,
        maxLength: 4,
      })
      fc.assert(
        fc.property(
          one.arbitrary,
          mutations,
          fc.nat(),
          fc.boolean(),
          (message, changes, cut, cuts) => {
            const body = Buffer.from(encoded(one, message).subarray(header(one)))
            for (const [at, to] of changes) if (body.length > 0) body[at % body.length] = to
            const given = cuts ? body.subarray(0, cut % (body.length + 1)) : body
            readsOrRefuses(() => one.decode(given))
          },
        ),
      )
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 60 }), (array) =>
          readsOrRefuses(() => one.decode(Buffer.from(array))),
        ),
      )
    })

    it(`${name}: a body cut short or grown by a byte is never taken for the message`, () => {
      const open = ['SASLResponse', 'CopyData', 'Authentication', 'BackendKeyData', 'CancelRequest']
      fc.assert(
        fc.property(one.arbitrary, (message) => {
          const body = encoded(one, message).subarray(header(one))
          if (open.includes(name)) return
          expect(() => one.decode(Buffer.concat([body, Buffer.from([1])]))).toThrow()
          if (body.length > 0) expect(() => one.decode(body.subarray(0, -1))).toThrow()
        }),
        { numRuns: 50 },
      )
    })

    it(`${name}: its trace is one line without an error`, () => {
      fc.assert(
        fc.property(one.arbitrary, (message) => {
          const frame = encoded(one, message)
          const line =
            one.tagged === false
              ? traceStartup(frame.subarray(4))
              : traceFrame(/^[A-Z]/.test(name) && isFrontend(name) ? 'F' : 'B', frame)
          expect(line).not.toMatch(/\n| \(message |\(invalid|Unknown/)
          expect(line.split('\t')[1]).toBe(String(frame.length - (one.tagged === false ? 0 : 1)))
        }),
        { numRuns: 50 },
      )
    })
  }

  for (const [name, encode] of Object.entries(empty)) {
    it(`${name} is eight bytes and known again`, () => {
      const writer = new FrameWriter()
      encode(writer)
      const packet = writer.take()
      expect(packet.length).toBe(8)
      expect(startup.decodeStartupPacket(packet.subarray(4))).toEqual({
        kind: name === 'SSLRequest' ? 'ssl' : 'gssenc',
      })
    })
  }

  it('a trace of arbitrary frames never throws', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('F' as const, 'B' as const),
        fc.uint8Array({ minLength: 5, maxLength: 60 }),
        (direction, array) => {
          traceFrame(direction, Buffer.from(array))
          traceStartup(Buffer.from(array))
        },
      ),
    )
  })
})

const frontendNames = new Set([
  'PasswordMessage',
  'SASLInitialResponse',
  'SASLResponse',
  'CopyData',
  'CopyFail',
  'Bind',
  'Close',
  'Describe',
  'Execute',
  'FunctionCall',
  'Parse',
  'Query',
])
const isFrontend = (name: string) => frontendNames.has(name)

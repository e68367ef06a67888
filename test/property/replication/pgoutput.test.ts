import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isEngineError } from '../../../src/errors/engine-error.js'
import { parseLsn, printLsn, readLsn } from '../../../src/replication/lsn.js'
import { PgoutputDecoder } from '../../../src/replication/pgoutput.js'

const relation = Buffer.from(
  '52000048fa7075626c69630074006400020169640000000014ffffffff0076000000' + '0019ffffffff',
  'hex',
)

test('arbitrary bytes give a change or a replication error, never another', () => {
  const tags = [...'BCOYRIUDTMSEcAbPKprZ'].map((tag) => tag.charCodeAt(0))
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 80 }),
    // Often the relation that is known, so that rows are reached.
    fc
      .uint8Array({ maxLength: 60 })
      .map((rest) => Uint8Array.from([0, 0, 0x48, 0xfa, 0x4e, 0, 2, ...rest])),
  )
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.oneof(fc.constantFrom(...tags), fc.nat(255)), body), { maxLength: 6 }),
      (messages) => {
        const decoder = new PgoutputDecoder()
        decoder.decode(relation)
        for (const [tag, rest] of messages) {
          try {
            decoder.decode(Buffer.from([tag, ...rest]))
          } catch (error) {
            expect(isEngineError(error) && error.code.startsWith('REPLICATION_')).toBe(true)
          }
        }
      },
    ),
    { numRuns: 3000, seed: 8 },
  )
})

test('a message cut short anywhere is an error, never a change', () => {
  const update = Buffer.from(
    '55000048fa4b00027400000001316e4e00027400000003313031740000000161',
    'hex',
  )
  for (let length = 0; length < update.length; length++) {
    const decoder = new PgoutputDecoder()
    decoder.decode(relation)
    expect(() => decoder.decode(update.subarray(0, length))).toThrow()
  }
})

test('LSNs print and parse to the same', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (value) => {
      const bytes = Buffer.alloc(8)
      bytes.writeBigUInt64BE(value)
      const lsn = readLsn(bytes, 0)
      expect(parseLsn(printLsn(lsn))).toBe(lsn)
    }),
    { seed: 8 },
  )
})

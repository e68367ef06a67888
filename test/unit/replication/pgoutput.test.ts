import { readdirSync, readFileSync } from 'node:fs'
import { PgoutputPlugin } from 'pg-logical-replication'
import { describe, expect, test } from 'vitest'
import {
  type Change,
  columnText,
  type Relation,
  type Tuple,
} from '../../../src/replication/change.js'
import { printLsn, readLsn } from '../../../src/replication/lsn.js'
import { PgoutputDecoder } from '../../../src/replication/pgoutput.js'

interface Recorded {
  id: string
  messages: string[]
  raw_hex: string[]
}

const directory = new URL('../../../fixtures/wal/', import.meta.url)
const cases = readdirSync(directory)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(new URL(name, directory), 'utf8')) as Recorded)

const value = (tuple: Tuple, i: number): unknown => {
  const kind = String.fromCharCode(tuple.kinds[i] as number)
  if (kind === 'u') return '<unchanged-toast>'
  return kind === 'n' ? null : columnText(tuple, i)
}
const row = (tuple: Tuple): string =>
  JSON.stringify(Array.from(tuple.kinds, (_, i) => value(tuple, i)))

/** In the words of the fixtures. */
function inWords(change: Change): string {
  switch (change.kind) {
    case 'begin':
      return 'Begin'
    case 'commit':
      return 'Commit'
    case 'relation': {
      const columns = change.columns.map((c) => `${c.isKey ? '*' : ''}${c.name}:${c.typeOid}`)
      return `Relation ${change.schema}.${change.name} identity=${change.identity} (${columns.join(', ')})`
    }
    case 'insert':
      return `Insert ${row(change.after)}`
    case 'update': {
      const old = change.before
        ? `old(${change.beforeKind === 'key' ? 'K' : 'O'})=${row(change.before)} `
        : ''
      return `Update ${old}new=${row(change.after)}`
    }
    case 'delete':
      return `Delete old(${change.beforeKind === 'key' ? 'K' : 'O'})=${row(change.before)}`
    case 'truncate':
      return `Truncate relations=${change.relations.length} flags=${(change.cascade ? 1 : 0) | (change.restartIdentity ? 2 : 0)}`
    default:
      return change.kind
  }
}

/** The 9,000 letters that the recording cuts are put back. */
const bytesOf = (hex: string): Buffer => {
  const cut = /^([0-9a-f]+)\.\.\.\((\d+) bytes\)$/.exec(hex)
  if (!cut) return Buffer.from(hex, 'hex')
  const head = Buffer.from(cut[1] as string, 'hex')
  return Buffer.concat([head, Buffer.alloc(Number(cut[2]) - head.length, head.at(-1))])
}

describe.each(cases)('$id', ({ messages, raw_hex }) => {
  test('every message decodes to what was recorded', () => {
    const decoder = new PgoutputDecoder()
    const found = raw_hex.map((hex) => inWords(decoder.decode(bytesOf(hex))))
    const wanted = messages.map((text) => text.replace('<t 9000 bytes>', 'z'.repeat(9000)))
    if (raw_hex.length === messages.length) expect(found).toEqual(wanted)
    else expect(found.filter((text) => !wanted.includes(text))).toEqual([])
  })

  test('agrees with the PgoutputPlugin of pg-logical-replication', () => {
    const decoder = new PgoutputDecoder()
    const oracle = new PgoutputPlugin({ protoVersion: 1, publicationNames: [] })
    for (const hex of raw_hex) {
      const ours = decoder.decode(bytesOf(hex))
      const theirs = oracle.parse(bytesOf(hex)) as unknown as Record<string, unknown>
      expect(theirs['tag']).toBe(ours.kind)
      if (ours.kind === 'begin' || ours.kind === 'commit') {
        const lsn = ours.kind === 'begin' ? ours.finalLsn : ours.commitLsn
        expect(readLsn(padded(theirs['commitLsn'] as string), 0)).toBe(lsn)
      }
      if (ours.kind === 'insert' || ours.kind === 'update') {
        expect(Object.values(theirs['new'] as object).map(plain)).toEqual(
          values(ours.relation, ours.after),
        )
      }
    }
  })
})

const padded = (lsn: string): Buffer => Buffer.from(lsn.replace('/', ''), 'hex')
const plain = (one: unknown): string | null | undefined =>
  one === null || one === undefined ? (one as null | undefined) : String(one)
const values = (relation: Relation, tuple: Tuple): (string | null | undefined)[] =>
  relation.columns.map((_, i) => {
    const found = value(tuple, i)
    return found === '<unchanged-toast>' ? undefined : (found as string | null)
  })

const hex = (...parts: string[]): Buffer => Buffer.from(parts.join(''), 'hex')
const lsnBytes = '0000000001f57a10'
const text = (word: string): string => `${Buffer.from(word).toString('hex')}00`

describe('messages of later protocols', () => {
  const relation = hex(
    '52',
    '000048fa',
    text('public'),
    text('t'),
    '64',
    '0001',
    '01',
    text('id'),
    '00000014',
    'ffffffff',
  )

  test('xid stands in rows of a stream block only', () => {
    const decoder = new PgoutputDecoder()
    expect(decoder.decode(hex('53', '00000007', '01'))).toEqual({
      kind: 'stream_start',
      xid: 7,
      first: true,
    })
    const streamed = hex('52', '00000007', relation.subarray(1).toString('hex'))
    expect(decoder.decode(streamed)).toMatchObject({ kind: 'relation', name: 't', xid: 7 })
    const insert = hex(
      '49',
      '00000008',
      '000048fa',
      '4e',
      '0001',
      '62',
      '00000008',
      '0000000000000005',
    )
    expect(decoder.decode(insert)).toMatchObject({ kind: 'insert', xid: 8 })
    expect(decoder.decode(hex('45'))).toEqual({ kind: 'stream_stop' })
    const plainInsert = hex('49', '000048fa', '4e', '0001', '74', '00000001', '35')
    expect(decoder.decode(plainInsert)).not.toHaveProperty('xid')
  })

  test('commit, abort (with and without a position) and two-phase messages', () => {
    const decoder = new PgoutputDecoder()
    const time = '0003046e71bda32c'
    expect(decoder.decode(hex('63', '00000007', '00', lsnBytes, lsnBytes, time))).toMatchObject({
      kind: 'stream_commit',
      xid: 7,
    })
    expect(decoder.decode(hex('41', '00000007', '00000009'))).toEqual({
      kind: 'stream_abort',
      xid: 7,
      subXid: 9,
    })
    expect(decoder.decode(hex('41', '00000007', '00000009', lsnBytes, time))).toMatchObject({
      abortLsn: 0x1f57a10n,
    })
    expect(
      decoder.decode(hex('62', lsnBytes, lsnBytes, time, '00000007', text('g'))),
    ).toMatchObject({ kind: 'begin_prepare', gid: 'g' })
    for (const [tag, kind] of [
      ['50', 'prepare'],
      ['4b', 'commit_prepared'],
      ['70', 'stream_prepare'],
    ] as const) {
      expect(
        decoder.decode(hex(tag, '00', lsnBytes, lsnBytes, time, '00000007', text('g'))),
      ).toMatchObject({ kind, xid: 7, gid: 'g' })
    }
    expect(
      decoder.decode(hex('72', '00', lsnBytes, lsnBytes, time, time, '00000007', text('g'))),
    ).toMatchObject({ kind: 'rollback_prepared', gid: 'g' })
  })

  test('logical messages, origins and types', () => {
    const decoder = new PgoutputDecoder()
    const message = decoder.decode(hex('4d', '01', lsnBytes, text('pgshard'), '00000002', 'abcd'))
    expect(message).toMatchObject({
      kind: 'message',
      transactional: true,
      prefix: 'pgshard',
      content: hex('abcd'),
    })
    expect(decoder.decode(hex('4f', lsnBytes, text('o')))).toMatchObject({
      kind: 'origin',
      name: 'o',
    })
    expect(decoder.decode(hex('59', '00004000', text('public'), text('mood')))).toMatchObject({
      kind: 'type',
      oid: 16384,
      name: 'mood',
    })
  })

  test('a row with more columns than its relation, and an unknown relation, are errors', () => {
    const decoder = new PgoutputDecoder()
    expect(() => decoder.decode(hex('49', '000048fa', '4e', '0001', '6e'))).toThrow(
      expect.objectContaining({ code: 'REPLICATION_UNKNOWN_RELATION' }),
    )
    decoder.decode(relation)
    expect(() => decoder.decode(hex('49', '000048fa', '4e', '0002', '6e', '6e'))).toThrow(
      expect.objectContaining({ code: 'REPLICATION_BAD_FIELD' }),
    )
    expect(() =>
      decoder.decode(hex('49', '000048fa', '4e', '0001', '74', '0000ffff', '35')),
    ).toThrow(expect.objectContaining({ code: 'REPLICATION_TRUNCATED' }))
  })
})

test('an LSN prints as PostgreSQL does', () => {
  expect(printLsn(readLsn(hex('0000001600B374D8'), 0))).toBe('16/B374D8')
})

/**
 * The two functions that take plain rows: rows of one line without quotes, backslashes and carriage returns (or of a fixed
 * binary shape), whose key is an integer placed by PostgreSQL's hash. What is not plain they leave to the splitters.
 * JavaScript pays for each row a dozen calls and a copyWithin; this pays a fifth of it (bench/copy-splitter.mjs).
 */
import { combineWords, keyWords } from '../../datum/hash.js'
import {
  assemble,
  block,
  branch,
  branchIf,
  type Code,
  type FunctionText,
  get,
  i32,
  i32Op,
  i64,
  i64Op,
  load,
  loop,
  set,
  store,
  tee,
  v128Op,
} from './wasm-code.js'

/** Where things lie in the memory; tables have an entry of four bytes for each lane. */
export const MOST_LANES = 64
export const places = {
  delimiter: 0,
  special: 4,
  keyIndex: 8,
  columns: 12,
  keyBytes: 16,
  buckets: 24,
  keyMost: 32,
  fills: 64,
  limits: 64 + 4 * MOST_LANES,
  lastLines: 64 + 8 * MOST_LANES,
  noteAts: 64 + 12 * MOST_LANES,
  noteLimits: 64 + 16 * MOST_LANES,
  /** The lane of each bucket, a byte each. */
  map: 2048,
  notes: 32 * 1024,
  arena: 64 * 1024,
} as const
export const MOST_BUCKETS = places.notes - places.map
/** A row is copied sixteen bytes at a time, the last time beyond its end. */
const COPY_SLACK = 15
/** What LineMap writes as one byte. */
const MOST_GAP = 0x40

const { add, and, atLeast, below, differ, equal, less, or, rotateLeft, shiftLeft, sub, xor } = i32Op

/** A byte, or more, of the data: positions count from the beginning of the arena. */
const dataByte = (at: Code): Code => load.byte(places.arena, at)
const dataWord = (at: Code, offset = 0): Code => load.i32(places.arena + offset, at)
const laneWord = (table: number): Code => load.i32(table, get('lane'))
const setLaneWord = (table: number, value: Code): Code => store.i32(table, get('lane'), value)
const increase = (name: string, by: Code): Code => set(name, add(get(name), by))
const parameter = (place: number): Code => load.i32(place, i32(0))

const NEWLINE = 10
const CARRIAGE_RETURN = 13
const MINUS = 45
const ZERO = 48
const BACKSLASH = 92
const MOST_DIGITS = 18

const isAny = v128Op.or(
  v128Op.or(
    v128Op.equal(get('bytes'), get('newlines')),
    v128Op.equal(get('bytes'), get('returns')),
  ),
  v128Op.equal(get('bytes'), get('specials')),
)

/** `end`: behind the newline of the row at `at`. Leaves for a row that is not whole, or not plain. */
const findEnd: Code = [
  ...branchIf('stop', equal(dataByte(get('at')), i32(BACKSLASH))),
  ...set('end', get('at')),
  ...block(
    'found',
    loop(
      'scan',
      branchIf('stop', atLeast(get('end'), get('limit'))),
      set('bytes', load.v128(places.arena, get('end'))),
      branchIf('found', tee('mask', v128Op.bitmask(isAny))),
      increase('end', i32(16)),
      branch('scan'),
    ),
  ),
  ...increase('end', i32Op.trailingZeros(get('mask'))),
  ...branchIf('stop', atLeast(get('end'), get('limit'))),
  ...branchIf('stop', differ(dataByte(get('end')), i32(NEWLINE))),
  ...increase('end', i32(1)),
]

/** `place`: the first byte of the key. */
const findTextKey: Code = [
  ...set('place', get('at')),
  ...set('field', get('keyIndex')),
  ...block(
    'reached',
    loop(
      'fields',
      branchIf('reached', i32Op.isZero(get('field'))),
      loop(
        'hop',
        branchIf('stop', atLeast(get('place'), get('end'))),
        increase('place', i32(1)),
        branchIf('hop', differ(load.byte(places.arena - 1, get('place')), get('delimiter'))),
      ),
      increase('field', i32(-1)),
      branch('fields'),
    ),
  ),
]

/** `key`: the number at `place`, which must fill its field. */
const readTextKey: Code = [
  ...set('isNegative', equal(dataByte(get('place')), i32(MINUS))),
  ...increase('place', get('isNegative')),
  ...set('field', get('place')),
  ...set('key', i64(0n)),
  ...block(
    'read',
    loop(
      'digits',
      branchIf('read', atLeast(tee('digit', sub(dataByte(get('place')), i32(ZERO))), i32(10))),
      set('key', i64Op.add(i64Op.mul(get('key'), i64(10n)), i64Op.ofUnsigned(get('digit')))),
      increase('place', i32(1)),
      branch('digits'),
    ),
  ),
  // None is as wrong as too many: one below zero is far above.
  ...branchIf('stop', atLeast(sub(sub(get('place'), get('field')), i32(1)), i32(MOST_DIGITS))),
  ...branchIf(
    'stop',
    and(
      differ(dataByte(get('place')), get('delimiter')),
      differ(get('place'), sub(get('end'), i32(1))),
    ),
  ),
  ...block(
    'positive',
    branchIf('positive', i32Op.isZero(get('isNegative'))),
    set('key', i64Op.sub(i64(0n), get('key'))),
  ),
  ...branchIf(
    'stop',
    i64Op.above(i64Op.add(get('key'), get('keyMost')), i64Op.shiftLeft(get('keyMost'), i64(1n))),
  ),
]

const swapped = (word: Code): Code => [
  ...set('word', word),
  ...or(
    and(rotateLeft(get('word'), i32(8)), i32(0x00ff00ff)),
    and(rotateLeft(get('word'), i32(24)), i32(0xff00ff00)),
  ),
]

/** `end`: behind the binary row at `at`; `place`: its key. */
const hopBinaryRow: Code = [
  ...branchIf('stop', less(sub(get('limit'), get('at')), i32(2))),
  ...branchIf('stop', differ(load.twoBytes(places.arena, get('at')), get('columns'))),
  ...set('end', add(get('at'), i32(2))),
  ...set('field', i32(0)),
  ...loop(
    'fields',
    branchIf('stop', i32Op.above(add(get('end'), i32(4)), get('limit'))),
    set('length', swapped(dataWord(get('end')))),
    branchIf('stop', less(get('length'), i32(-1))),
    increase('end', i32(4)),
    block(
      'other',
      branchIf('other', differ(get('field'), get('keyIndex'))),
      branchIf('stop', differ(get('length'), get('keyBytes'))),
      set('place', get('end')),
    ),
    block(
      'isNull',
      branchIf('isNull', less(get('length'), i32(0))),
      increase('end', get('length')),
    ),
    branchIf('stop', i32Op.above(get('end'), get('limit'))),
    branchIf('fields', below(tee('field', add(get('field'), i32(1))), get('columnCount'))),
  ),
]

/** `key`: the binary integer at `place`. */
const readBinaryKey: Code = set(
  'key',
  i64Op.shiftRightSigned(
    i64Op.or(
      i64Op.shiftLeft(i64Op.ofUnsigned(swapped(dataWord(get('place')))), i64(32n)),
      i64Op.ofUnsigned(swapped(dataWord(get('place'), 4))),
    ),
    i64Op.ofUnsigned(sub(i32(64), shiftLeft(get('keyBytes'), i32(3)))),
  ),
)

const jenkinsStep = (to: string, by: string, bits: number): Code =>
  set(to, sub(xor(get(to), get(by)), rotateLeft(get(by), i32(bits))))

/** `lane`: the place in the tables of the shard of `key`; hash.ts has the same in JavaScript. */
const placeKey: Code = [
  ...set('word', i32Op.ofI64(i64Op.shiftRightSigned(get('key'), i64(32n)))),
  ...set('word', xor(get('word'), i32Op.shiftRightSigned(get('word'), i32(31)))),
  ...set('a', add(i32(keyWords[0]), xor(i32Op.ofI64(get('key')), get('word')))),
  ...set('b', i32(keyWords[1])),
  ...set('c', i32(keyWords[2])),
  ...jenkinsStep('c', 'b', 14),
  ...jenkinsStep('a', 'c', 11),
  ...jenkinsStep('b', 'a', 25),
  ...jenkinsStep('c', 'b', 16),
  ...jenkinsStep('a', 'c', 4),
  ...jenkinsStep('b', 'a', 14),
  ...jenkinsStep('c', 'b', 24),
  ...set(
    'key',
    i64Op.add(
      i64Op.or(i64Op.shiftLeft(i64Op.ofUnsigned(get('b')), i64(32n)), i64Op.ofUnsigned(get('c'))),
      i64((BigInt(combineWords[0]) << 32n) | BigInt(combineWords[1])),
    ),
  ),
  ...set(
    'lane',
    shiftLeft(
      load.byte(places.map, i32Op.ofI64(i64Op.remainder(get('key'), get('buckets')))),
      i32(2),
    ),
  ),
]

/** Notes the row's line and appends its bytes; leaves when either has no room. */
const appendRow: Code = [
  ...set('fill', laneWord(places.fills)),
  ...set('length', sub(get('end'), get('at'))),
  ...branchIf(
    'stop',
    i32Op.above(add(add(get('fill'), get('length')), i32(COPY_SLACK)), laneWord(places.limits)),
  ),
  ...set('gap', sub(add(get('line'), i32(1)), laneWord(places.lastLines))),
  ...branchIf('stop', atLeast(get('gap'), i32(MOST_GAP))),
  ...set('note', laneWord(places.noteAts)),
  ...branchIf('stop', atLeast(get('note'), laneWord(places.noteLimits))),
  ...store.byte(0, get('note'), shiftLeft(get('gap'), i32(1))),
  ...setLaneWord(places.noteAts, add(get('note'), i32(1))),
  ...increase('line', i32(1)),
  ...setLaneWord(places.lastLines, get('line')),
  ...setLaneWord(places.fills, add(get('fill'), get('length'))),
  ...loop(
    'copy',
    store.v128(places.arena, get('fill'), load.v128(places.arena, get('at'))),
    increase('fill', i32(16)),
    increase('at', i32(16)),
    branchIf('copy', below(get('at'), get('end'))),
  ),
  ...set('at', get('end')),
]

const words = ['end', 'mask', 'place', 'field', 'digit', 'isNegative', 'word', 'a', 'b', 'c']
const rowWords = [...words, 'lane', 'fill', 'length', 'gap', 'note', 'delimiter', 'keyIndex']
const parameters = ['at', 'limit', 'line']

const splitLines: FunctionText = {
  name: 'lines',
  parameters,
  locals: {
    i32: rowWords,
    i64: ['key', 'keyMost', 'buckets'],
    v128: ['bytes', 'newlines', 'returns', 'specials'],
  },
  body: [
    set('delimiter', parameter(places.delimiter)),
    set('keyIndex', parameter(places.keyIndex)),
    set('buckets', load.i64(places.buckets, i32(0))),
    set('keyMost', load.i64(places.keyMost, i32(0))),
    set('newlines', v128Op.splat(i32(NEWLINE))),
    set('returns', v128Op.splat(i32(CARRIAGE_RETURN))),
    set('specials', v128Op.splat(parameter(places.special))),
    block(
      'stop',
      loop('rows', findEnd, findTextKey, readTextKey, placeKey, appendRow, branch('rows')),
    ),
    get('at'),
  ],
}

const splitBinary: FunctionText = {
  name: 'binary',
  parameters,
  locals: {
    i32: [...rowWords, 'columns', 'columnCount', 'keyBytes'],
    i64: ['key', 'buckets'],
  },
  body: [
    set('columnCount', parameter(places.columns)),
    // As the first two bytes of a row are loaded.
    set(
      'columns',
      or(
        shiftLeft(and(get('columnCount'), i32(0xff)), i32(8)),
        i32Op.shiftRightSigned(get('columnCount'), i32(8)),
      ),
    ),
    set('keyBytes', parameter(places.keyBytes)),
    set('keyIndex', parameter(places.keyIndex)),
    set('buckets', load.i64(places.buckets, i32(0))),
    block('stop', loop('rows', hopBinaryRow, readBinaryKey, placeKey, appendRow, branch('rows'))),
    get('at'),
  ],
}

/** The module; it wants a memory of so many pages at least. */
export const plainModule = (pages: number): Buffer => assemble([splitLines, splitBinary], pages)

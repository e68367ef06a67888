/** A batch is known by its bytes only when nothing but its parameters differs, and then a server is told the same as if it was read. */
import { expect, test } from 'vitest'
import type { ServerConnection } from '../../../../src/server/server-connection.js'
import { Settings } from '../../../../src/server/settings.js'
import type { SharedStatement } from '../../../../src/server/shared-statement.js'
import { AlikeBatch } from '../../../../src/session/requests/alike-batch.js'
import { readBatch } from '../../../../src/session/requests/batch.js'
import {
  batchUnit,
  type PipelinedBatch,
  pipelinedBatchOf,
} from '../../../../src/session/requests/pipelined-batch.js'
import {
  type ClientStatement,
  ClientStatements,
} from '../../../../src/session/state/client-statements.js'
import { FrameWriter } from '../../../../src/wire/frame-writer.js'

const frame = (tag: string, write: (writer: FrameWriter) => void = () => undefined): Buffer => {
  const writer = new FrameWriter(64).begin(tag.charCodeAt(0))
  write(writer)
  return Buffer.from(writer.end().take())
}
const parse = (name = '') =>
  frame('P', (writer) => void writer.cstring(name).cstring('select $1').int16(0))
const bind = (values: readonly string[], name = '', results = 0) =>
  frame('B', (writer) => {
    writer.cstring('').cstring(name).int16(0).int16(values.length)
    for (const value of values) writer.value(value)
    writer.int16(results)
    for (let i = 0; i < results; i++) writer.int16(0)
  })
const describePortal = frame('D', (writer) => void writer.byte(0x50).cstring(''))
const execute = (rows = 0) => frame('E', (writer) => void writer.cstring('').int32(rows))
const sync = frame('S')
const whole = (...frames: Buffer[]) => Buffer.concat([...frames, sync])

const shared: SharedStatement = {
  serverName: 'pgshard_7',
  text: 'select $1',
  parameterTypes: [],
  isSql: false,
  reading: Settings.none,
  epoch: 0,
  shape: undefined,
  uses: 2,
}
const statement: ClientStatement = {
  shared,
  planned: { text: shared.text, statements: [] },
  generation: 1,
  confirmed: true,
}
const read = (bytes: Buffer): PipelinedBatch =>
  pipelinedBatchOf(readBatch(bytes).map((item) => ({ item, statement }))) as PipelinedBatch

const serverWith = (isPrepared: boolean) =>
  ({
    hasPrepared: () => isPrepared,
    typesHere: (types: readonly number[]) => types,
    traffic: { preparedHits: 0 },
  }) as unknown as ServerConnection

const unnamed = [parse(), bind(['1']), describePortal, execute()] as const
const known = AlikeBatch.of(read(whole(...unnamed))) as AlikeBatch
const matches = (bytes: Buffer) => known.matches(bytes, bytes.length)

test('knows the batch with other parameters, of any length and number', () => {
  for (const values of [['1'], ['22'], ['x'.repeat(300)], [], ['a', 'b', '']])
    expect(matches(whole(parse(), bind(values), describePortal, execute()))).toBe(true)
})

test('denies whatever else differs', () => {
  const [, one] = unnamed
  const others = {
    'another text': whole(
      frame('P', (w) => void w.cstring('').cstring('select 2').int16(0)),
      one,
    ),
    'another statement': whole(parse(), bind(['1'], 's'), describePortal, execute()),
    'no Parse': whole(one, describePortal, execute()),
    'no Describe': whole(parse(), one, execute()),
    'a row limit': whole(parse(), one, describePortal, execute(5)),
    'no Sync': Buffer.concat(unnamed),
    'a Flush for the Sync': Buffer.concat([...unnamed, frame('H')]),
    'two batches': Buffer.concat([whole(...unnamed), whole(...unnamed)]),
    'a part of it': whole(...unnamed).subarray(0, -1),
    'two Binds': whole(parse(), one, bind(['2']), describePortal, execute()),
  }
  for (const [what, bytes] of Object.entries(others)) expect(matches(bytes), what).toBe(false)
})

test('leaves a Bind that is not sound to those who read it', () => {
  const sound = bind(['12345'])
  for (let at = 7; at < sound.length; at++) {
    const broken = Buffer.from(sound)
    broken[at] = 0x7f
    const bytes = whole(parse(), broken, describePortal, execute())
    // only the five bytes of the value may be anything
    const isValue = at >= sound.length - 7 && at < sound.length - 2
    expect(matches(bytes), `byte ${at}`).toBe(isValue)
  }
})

test('tells a server what it would be told if the batch was read', () => {
  const named = AlikeBatch.of(read(whole(bind(['1'], 'mine', 1), execute()))) as AlikeBatch
  const cases = [
    [known, whole(parse(), bind(['4711']), describePortal, execute())],
    [named, whole(bind(['4711', 'x'], 'mine', 1), execute())],
  ] as const
  for (const [alike, bytes] of cases) {
    for (const isPrepared of [true, false]) {
      expect(alike.matches(bytes, bytes.length)).toBe(true)
      const { bytes: memory, length, ...flags } = alike.unitFor(serverWith(isPrepared), bytes)
      const expected = batchUnit(read(bytes), serverWith(isPrepared))
      const { bytes: own, length: ownLength, ...ownFlags } = expected
      expect(memory.subarray(0, length)).toEqual(own.subarray(0, ownLength))
      expect(flags).toEqual(ownFlags)
    }
  }
})

test('is of the statement that the client’s name means now', () => {
  const statements = new ClientStatements()
  expect(known.isNamedIn(statements)).toBe(true)
  expect(statements.get('')).toBe(statement)
  const named = AlikeBatch.of(read(whole(bind(['1'], 'mine'), execute()))) as AlikeBatch
  expect(named.isNamedIn(statements)).toBe(false)
  statements.set('mine', statement)
  expect(named.isNamedIn(statements)).toBe(true)
  statements.set('mine', { ...statement })
  expect(named.isNamedIn(statements)).toBe(false)
})

test('is not made of what must be read each time', () => {
  expect(AlikeBatch.of(read(whole(parse('s'), bind(['1'], 's'), execute())))).toBeUndefined()
  const once = { ...statement, shared: { ...shared, uses: 1 } }
  const steps = readBatch(whole(...unnamed)).map((item) => ({ item, statement: once }))
  expect(AlikeBatch.of(pipelinedBatchOf(steps) as PipelinedBatch)).toBeUndefined()
})

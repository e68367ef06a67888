import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { encodeQuery } from '../../../src/wire/frontend-messages.js'
import { ConnectionTrace, traceFrame } from '../../../src/wire/trace.js'
import { traceOf, traceOfConversation } from '../../support/trace-of.js'

const conversation = JSON.parse(
  readFileSync(
    join(import.meta.dirname, '../../../fixtures/wire/libpq-18-conversation.json'),
    'utf8',
  ),
) as { chunks: { from: 'client' | 'server'; hex: string }[]; trace: string[] }

const chunks = conversation.chunks.map(({ from, hex }) => ({
  from,
  bytes: Buffer.from(hex, 'hex'),
}))
const side = (lines: string[], direction: string) => lines.filter((line) => line[0] === direction)

describe('trace', () => {
  it('is what libpq itself wrote of the same session', () => {
    const ours = traceOfConversation(chunks)
    // libpq writes a line when it reads a message, we when it passes: each side has its own order.
    expect(side(ours, 'F')).toEqual(side(conversation.trace, 'F'))
    // libpq 18 does not trace AuthenticationOk.
    const withoutOk = ours.filter((line) => line !== 'B\t8\tAuthenticationOk')
    expect(withoutOk.length).toBe(ours.length - 1)
    expect(side(withoutOk, 'B')).toEqual(side(conversation.trace, 'B'))
  })

  it('is the same when every byte comes alone', () => {
    const single = chunks.flatMap(({ from, bytes }) =>
      [...bytes].map((byte) => ({ from, bytes: Buffer.from([byte]) })),
    )
    expect(traceOfConversation(single)).toEqual(traceOfConversation(chunks))
  })

  it('shows no secret', () => {
    const lines: string[] = []
    const trace = new ConnectionTrace((line) => lines.push(line))
    for (const { from, bytes } of chunks) trace[from](bytes)
    const text = lines.join('\n')
    expect(text).toContain("F\t108\tSASLResponse\t 'BBBB'")
    expect(text).not.toMatch(/p=|v=|r=/)
    const writer = new FrameWriter()
    writer.begin(0x70).cstring('pencil').end()
    expect(traceFrame('F', writer.take())).toBe("F\t11\tAuthenticationResponse\t 'BBBB'")
  })

  it('keeps a message on one line', () => {
    const writer = new FrameWriter()
    encodeQuery(writer, 'select 1\nB\t5\tReadyForQuery\t I')
    expect(traceOf('F', writer.take())).toEqual([
      'F\t34\tQuery\t "select 1\\x0aB\\x095\\x09ReadyForQuery\\x09 I"',
    ])
  })

  it('says what is wrong with a bad message, and what is unfinished', () => {
    expect(traceOf('B', Buffer.from([0x5a, 0, 0, 0, 4]))).toEqual([
      'B\t4\tReadyForQuery\t (message "Z" ends before its field "byte")',
    ])
    expect(traceOf('B', Buffer.from([0x21, 0, 0, 0, 4, 0x5a]))).toEqual([
      'B\t4\tUnknown message: 21',
      'B\t(1 bytes of a frame)',
    ])
  })
})

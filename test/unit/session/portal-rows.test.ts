import { expect, it } from 'vitest'
import { PortalRows } from '../../../src/session/requests/portal-rows.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { backend } from '../../../src/wire/tags.js'

const row = (text: string): Buffer =>
  new FrameWriter().begin(backend.dataRow).int16(1).value(Buffer.from(text)).end().take()
const notice = new FrameWriter().begin(backend.noticeResponse).byte(0).end().take()
const tagsOf = (bytes: Buffer): string => {
  let tags = ''
  for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1))
    tags += String.fromCharCode(bytes[at]!)
  return tags
}

function portal(limit: number, maxBytes: number) {
  const sent: Buffer[] = []
  const rows = new PortalRows(
    {
      forward: (buffer, start, end) => void sent.push(Buffer.from(buffer.subarray(start, end))),
      append: (bytes) => void sent.push(bytes),
      flush: () => true,
    },
    limit,
    maxBytes,
  )
  return { rows, sent: () => Buffer.concat(sent) }
}

it('passes the first rows and all that is no row, and keeps the rest', () => {
  const { rows, sent } = portal(2, 1000)
  const all = Buffer.concat([row('a'), notice, row('b'), row('c'), notice, row('d'), row('e')])
  rows.forward(all, 0, all.length)
  expect(tagsOf(sent())).toBe('DNDN')
  expect(tagsOf(rows.ending)).toBe('s')
  expect(tagsOf(rows.rest.take(2))).toBe('DDs')
  expect(rows.rest.take(0)).toEqual(Buffer.concat([row('e'), Buffer.from('C\0\0\0\rSELECT 1\0')]))
  expect(tagsOf(rows.rest.take(2))).toBe('C')
})

it('ends with SELECT when there were fewer, and holds no more than it may', () => {
  const few = portal(3, 0)
  few.rows.forward(row('a'), 0, row('a').length)
  expect(tagsOf(few.rows.ending)).toBe('C')
  const one = row('x'.repeat(50))
  const bound = portal(1, 100)
  bound.rows.forward(Buffer.concat([one, one]), 0, one.length * 2)
  expect(bound.rows.error).toBeUndefined()
  bound.rows.forward(one, 0, one.length)
  expect(bound.rows.error).toMatchObject({ sqlstate: '54000' })
  const dropped = portal(1, 0)
  dropped.rows.forward(Buffer.concat([one, one]), 0, one.length * 2)
  expect(dropped.rows.error).toBeUndefined()
  expect(tagsOf(dropped.rows.rest.take(0))).toBe('C')
})

import { describe, expect, it } from 'vitest'
import { makeCopyOptions } from '../../../src/copy/copy-options.js'
import { collectRows } from './row-collector.js'

const layout = { table: 't', columns: ['id', 'a', 'b'], keyIndex: 0 }
const csv = (text: string, extra: Record<string, string> = {}, place = layout, chunk?: number) =>
  collectRows(
    makeCopyOptions({ format: 'csv', ...extra }),
    place,
    Buffer.from(text, 'latin1'),
    chunk,
  )
const text = (input: string, extra: Record<string, string> = {}, place = layout, chunk?: number) =>
  collectRows(makeCopyOptions(extra), place, Buffer.from(input, 'latin1'), chunk)
const error = (run: () => unknown) => {
  try {
    run()
  } catch (thrown) {
    const { sqlstate, message, where } = thrown as {
      sqlstate: string
      message: string
      where: string
    }
    return `${sqlstate} ${message} (${where})`
  }
  return 'no error'
}

describe('csv', () => {
  it('keeps rows byte for byte and reads quoted keys', () => {
    const { rows, keys } = csv('1,x,y\n"4""2","a\nb",c\n,,\n"",x,y')
    expect(rows).toEqual(['1,x,y\n', '"4""2","a\nb",c\n', ',,\n', '"",x,y'])
    expect(keys).toEqual(['1', '4"2', null, ''])
  })

  it('accepts quotes in mid-field and another escape', () => {
    expect(csv('a"b,c"d,x,y\n').keys).toEqual(['ab,cd'])
    expect(csv(`${String.raw`"a\"b\\c\d",x,y`}\n`, { escape: '\\' }).keys).toEqual([
      String.raw`a"b\c\d`,
    ])
  })

  it('finds the key in any column, behind quoted ones', () => {
    const place = { ...layout, keyIndex: 2 }
    expect(csv('"x,""y\n",2,3\n1,2,"3"\n', {}, place).keys).toEqual(['3', '3'])
  })

  it('counts lines as PostgreSQL does', () => {
    // Before the first line end is seen, PostgreSQL counts carriage returns inside quotes.
    expect(csv('0,"x\ny",z\n1,"a\nb\nc",x\n2,y,z\n').lines).toEqual([1, 4, 5])
  })

  it('reads force_null and force_not_null of the key', () => {
    const forced = (name: string) => ({ ...makeCopyOptions({ format: 'csv' }), [name]: ['id'] })
    const input = Buffer.from('"",x,y\n,x,y\n')
    expect(collectRows(forced('forceNull'), layout, input).keys).toEqual([null, null])
    expect(collectRows(forced('forceNotNull'), layout, input).keys).toEqual(['', ''])
  })

  it('ends at a lone backslash-dot before version 18 only', () => {
    const input = '1,a,b\n\\.\n2,c,d\n'
    expect(csv(input).rows).toEqual(['1,a,b\n'])
    expect(csv(input, {}, { ...layout, serverMajor: 18 } as typeof layout).rows).toHaveLength(3)
    expect(csv('\\.x,a,b\n').keys).toEqual(['\\.x'])
    expect(csv('"a\n\\.\nb",a,b\n').rows).toHaveLength(1)
  })

  it('takes the header as one record', () => {
    const { header, rows } = csv('"the\nid",a,b\n7,x,y\n', { header: 'true' })
    expect(header).toBe('"the\nid",a,b\n')
    expect(rows).toEqual(['7,x,y\n'])
  })

  it('refuses what PostgreSQL refuses', () => {
    expect(error(() => csv('1,x,y\n2,p\rq,z\n'))).toBe(
      '22P04 unquoted carriage return found in data (COPY t, line 2)',
    )
    expect(error(() => csv('1,x,y\r\n2,p\nq,z\r\n'))).toBe(
      '22P04 unquoted newline found in data (COPY t, line 2)',
    )
    expect(error(() => csv('1,x,y\n"2,p,q\n'))).toMatch(
      /^22P04 unterminated CSV quoted field \(COPY t, line/,
    )
    const place = { ...layout, keyIndex: 2 }
    expect(error(() => csv('1,x\n', {}, place))).toBe(
      '22P04 missing data for column "b" (COPY t, line 1: "1,x")',
    )
  })

  it('gives the same rows in any chunks', () => {
    const input = '1,"a\r\n""b",c\r\n2,x,y\r\n\\.x,"",z\r\n"3",,\r\n'
    const whole = csv(input)
    expect(whole.rows).toHaveLength(4)
    for (let chunk = 1; chunk < input.length; chunk++)
      expect(csv(input, {}, layout, chunk)).toEqual(whole)
  })
})

describe('text', () => {
  it('unescapes the key and knows its NULL', () => {
    const { keys } = text('\\N\tx\ty\n\\x41\\102\\tq\tx\ty\n\\\\N\tx\ty\n\tx\ty\n')
    expect(keys).toEqual([null, 'AB\tq', '\\N', ''])
  })

  it('takes an escaped line end for data', () => {
    expect(text('1\ta\\\nb\tc\n2\ta\\\\\tc\n').rows).toEqual(['1\ta\\\nb\tc\n', '2\ta\\\\\tc\n'])
  })

  it('ends at backslash-dot', () => {
    expect(text('1\tx\ty\n\\.\nnever').rows).toEqual(['1\tx\ty\n'])
    expect(text('1\tx\ty\\.\nnever').rows).toEqual(['1\tx\ty'])
    expect(error(() => text('1\tx\ty\n\\.x\n'))).toBe(
      '22P04 end-of-copy marker corrupt (COPY t, line 2)',
    )
    expect(error(() => text('1\tx\ty\r\n\\.\n\n'))).toMatch(/does not match previous newline style/)
    expect(text('1\tx\\\\.\ty\n').rows).toHaveLength(1)
  })

  it('refuses mixed line ends', () => {
    expect(error(() => text('1\tx\ty\n2\tp\rq\tz\n'))).toBe(
      '22P04 literal carriage return found in data (COPY t, line 2)',
    )
  })

  it('gives the same rows in any chunks', () => {
    const input = '1\ta\\\r\\\nb\tc\r\n2\t\\\\\t\\x4\r\n\\N\t\\N\t\\\\N\r\n\\.\r\nrest'
    const whole = text(input)
    expect(whole.rows).toHaveLength(3)
    for (let chunk = 1; chunk < input.length; chunk++)
      expect(text(input, {}, layout, chunk)).toEqual(whole)
  })
})

describe('binary', () => {
  const options = makeCopyOptions({ format: 'binary' })
  const head = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex')
  const row = Buffer.from('000300000001' + '61' + 'ffffffff' + '00000002' + '6262', 'hex')
  const place = { table: 't', columns: ['id', 'a', 'b'], keyIndex: 2 }

  it('hops over the fields in any chunks, with and without trailer', () => {
    for (const tail of [Buffer.alloc(0), Buffer.from([255, 255])]) {
      const input = Buffer.concat([head, row, row, tail])
      const whole = collectRows(options, place, input)
      expect(whole.keys).toEqual(['bb', 'bb'])
      expect(whole.header).toBe(head.toString('latin1'))
      for (let chunk = 1; chunk < input.length; chunk++)
        expect(collectRows(options, place, input, chunk)).toEqual(whole)
    }
  })

  it('refuses what PostgreSQL refuses', () => {
    const feed = (...parts: Buffer[]) =>
      error(() => collectRows(options, place, Buffer.concat(parts)))
    expect(feed(Buffer.from('1,2,3\n'))).toMatch(/^22P04 COPY file signature not recognized/)
    expect(feed(head, row.subarray(0, 9))).toBe(
      '22P04 unexpected EOF in COPY data (COPY t, line 1, column a)',
    )
    expect(feed(head, Buffer.from('0002', 'hex'))).toBe(
      '22P04 row field count is 2, expected 3 (COPY t, line 1)',
    )
    expect(feed(head, Buffer.from('ffff00', 'hex'))).toMatch(
      /^22P04 received copy data after EOF marker/,
    )
    expect(feed(head, Buffer.from('0003fffffff0', 'hex'))).toMatch(/^22P04 invalid field size/)
  })
})

import { describe, expect, it } from 'vitest'
import { makeCopyOptions, parseCopyOptions } from '../../../src/copy/copy-options.js'

const state = (options: Record<string, string>) => {
  try {
    makeCopyOptions(options)
  } catch (error) {
    const { sqlstate, message } = error as { sqlstate: string; message: string }
    return `${sqlstate} ${message}`
  }
  return 'accepted'
}

describe('copy options', () => {
  it('has the defaults of each format', () => {
    const csv = makeCopyOptions({ format: 'csv' })
    expect([csv.delimiter, csv.quote, csv.escape, String(csv.nullMark)]).toEqual([44, 34, 34, ''])
    const text = makeCopyOptions()
    expect([text.format, text.delimiter, String(text.nullMark)]).toEqual(['text', 9, '\\N'])
    expect(makeCopyOptions({ format: 'csv', quote: "'" }).escape).toBe(39)
  })

  it('reads old syntax and lists', () => {
    const options = parseCopyOptions({
      direction: 'in',
      options: [
        { name: 'csv' },
        { name: 'header' },
        { name: 'force_null', list: ['a', 'b'] },
        { name: 'force_not_null', list: ['*'] },
      ],
    })
    expect(options).toMatchObject({
      format: 'csv',
      header: 'skip',
      forceNull: ['a', 'b'],
      forceNotNull: 'all',
    })
  })

  it.each([
    [{ format: 'xml' }, '22023 COPY format "xml" not recognized'],
    [{ nonsense: '1' }, '42601 option "nonsense" not recognized'],
    [{ delimiter: ';;' }, '0A000 COPY delimiter must be a single one-byte character'],
    [{ delimiter: 'ä' }, '0A000 COPY delimiter must be a single one-byte character'],
    [{ delimiter: 'a' }, '22023 COPY delimiter cannot be "a"'],
    [{ delimiter: '\n' }, '22023 COPY delimiter cannot be newline or carriage return'],
    [
      { format: 'csv', null: 'a\n' },
      '22023 COPY null representation cannot use newline or carriage return',
    ],
    [
      { format: 'csv', null: 'a,b' },
      '0A000 COPY delimiter must not appear in the NULL specification',
    ],
    [
      { format: 'csv', null: '"' },
      '0A000 CSV quote character must not appear in the NULL specification',
    ],
    [{ format: 'csv', delimiter: '"' }, '22023 COPY delimiter and quote must be different'],
    [{ quote: '"' }, '0A000 COPY quote available only in CSV mode'],
    [{ format: 'binary', delimiter: ',' }, '42601 cannot specify DELIMITER in BINARY mode'],
    [{ format: 'binary', header: 'true' }, '0A000 cannot specify HEADER in BINARY mode'],
    [{ header: 'maybe' }, '42601 header requires a Boolean value or "match"'],
    [{ freeze: 'maybe' }, '42601 freeze requires a Boolean value'],
    [{ format: 'csv', header: 'match' }, 'accepted'],
  ])('checks %j', (options, expected) => {
    expect(state(options as Record<string, string>)).toBe(expected)
  })
})

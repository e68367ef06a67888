import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { type CopyOptions, makeCopyOptions } from '../../../../src/copy/copy-options.js'
import type { CopyTable } from '../../../../src/load/copy-target.js'
import { type Compression, listInputs, readChunks } from '../../../../src/load/input/open-input.js'
import { findHeader, readHeader } from '../../../../src/load/input/read-header.js'
import { formatOf, splitNames } from '../../../../src/load/request/load-options.js'

const directory = mkdtempSync(join(tmpdir(), 'pgshard-input-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** `zstd -c` of two lines. */
const ZSTD = Buffer.from('28b52ffd0458410000312c610a322c620ac4149a93', 'hex')
const TEXT = '1,a\n2,b\n'

async function read(bytes: Buffer, compression: Compression = 'auto'): Promise<string> {
  const path = join(directory, 'one')
  writeFileSync(path, bytes)
  const [input] = await listInputs([path])
  let text = ''
  let seen = 0
  for await (const chunk of readChunks(input!, compression, (more) => (seen += more))) text += chunk
  expect(seen).toBe(bytes.length)
  return text
}

describe('inputs', () => {
  it('unpacks by the first bytes', async () => {
    expect(await read(Buffer.from(TEXT))).toBe(TEXT)
    expect(await read(gzipSync(TEXT))).toBe(TEXT)
    expect(await read(Buffer.concat([gzipSync('1,a\n'), gzipSync('2,b\n')]))).toBe(TEXT)
    expect(await read(ZSTD)).toBe(TEXT)
    expect(await read(Buffer.concat([ZSTD, ZSTD]))).toBe(TEXT + TEXT)
    expect(await read(Buffer.alloc(0))).toBe('')
    expect(await read(gzipSync(TEXT), 'none')).not.toBe(TEXT)
  })

  it('reports what cannot be unpacked', async () => {
    const broken = { code: 'COPY_INPUT_BROKEN' }
    await expect(read(gzipSync(TEXT).subarray(0, 15))).rejects.toMatchObject(broken)
    await expect(read(ZSTD.subarray(0, 12))).rejects.toMatchObject(broken)
    await expect(read(Buffer.from(TEXT), 'gzip')).rejects.toMatchObject(broken)
  })

  it('reports a file that becomes shorter while it is read', async () => {
    const path = join(directory, 'shrinks')
    writeFileSync(path, Buffer.alloc(5 << 20, 'x\n'))
    const [input] = await listInputs([path])
    const readAll = async () => {
      for await (const _ of readChunks(input!, 'auto', () => undefined)) truncateSync(path, 100)
    }
    await expect(readAll()).rejects.toMatchObject({
      code: 'COPY_INPUT_BROKEN',
      message: expect.stringContaining('shorter') as string,
    })
  })

  it('finds files by pattern, in order', async () => {
    for (const name of ['p2.csv', 'p1.csv', 'q.csv']) writeFileSync(join(directory, name), TEXT)
    const inputs = await listInputs([join(directory, 'p?.csv'), '-'])
    expect(inputs.map(({ name }) => name.split('/').at(-1))).toEqual([
      'p1.csv',
      'p2.csv',
      'standard input',
    ])
    expect(inputs[0]?.sizeBytes).toBe(TEXT.length)
    for (const missing of ['nope.csv', 'z*.csv', ''])
      await expect(listInputs([join(directory, missing)])).rejects.toMatchObject({
        code: 'FILE_MISSING',
      })
  })
})

describe('header', () => {
  const tableOf = (...names: string[]): CopyTable => ({
    ...{ schema: 'public', name: 't', serverMajor: 15 },
    columns: names.map((name) => ({
      ...{ name, type: 'text', typeOid: 25, modifier: -1, identity: false },
    })),
  })
  const read = (options: CopyOptions, header: Buffer, ...columns: string[]) =>
    readHeader(options, { header, name: 'f', table: tableOf(...columns) })

  it('names the columns', async () => {
    const csv = makeCopyOptions({ format: 'csv', delimiter: ';' })
    const sample = Buffer.from('"a;1";"b\n""2""";c\r\n1;2;3')
    expect(await read(csv, findHeader(csv, sample)!)).toEqual(['a;1', 'b\n"2"', 'c'])
    const text = makeCopyOptions({ header: 'true' })
    expect(await read(text, findHeader(text, Buffer.from('id\tn\\\\x\n'))!)).toEqual(['id', 'n\\x'])
    expect(findHeader(csv, Buffer.from('a;b'))).toBeUndefined()
    await expect(read(csv, Buffer.from('a;;b\n'))).rejects.toMatchObject({
      code: 'COPY_HEADER_EMPTY',
    })
  })

  it('guesses the delimiter when the names are not those of the table', async () => {
    const csv = makeCopyOptions({ format: 'csv' })
    await expect(read(csv, Buffer.from('"a,b"|c\n'), 'a,b', 'c')).rejects.toMatchObject({
      code: 'COPY_COLUMN_MISSING',
      hint: expect.stringContaining("--delimiter '|'") as string,
    })
    await expect(read(csv, Buffer.from('a\tc\n'), 'a', 'c')).rejects.toMatchObject({
      hint: expect.stringContaining("--delimiter '\\t'") as string,
    })
    expect(await read(csv, Buffer.from('a;c\n'), 'x', 'y')).toEqual(['a;c'])
  })
})

it('takes the format from the name', () => {
  expect(['a.csv', 'a.tsv.gz', 'a.bin', '-'].map(formatOf)).toEqual([
    'csv',
    'text',
    'binary',
    'csv',
  ])
  expect(splitNames(['a, b', 'c'])).toEqual(['a', 'b', 'c'])
})

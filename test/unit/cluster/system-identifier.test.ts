import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { crc32c, giveNewSystemIdentifier } from '../../../src/cluster/system-identifier.js'

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'pgshard-unit-'))
  mkdirSync(join(data, 'global'))
  mkdirSync(join(data, 'pg_wal'))
})
afterEach(() => rmSync(data, { recursive: true }))

test('crc32c of the standard check text', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
})

test('changes the identifier in pg_control and in WAL, and keeps the checksum right', () => {
  const control = Buffer.alloc(8192)
  for (let i = 0; i < 292; i++) control[i] = (i * 7 + 3) & 0xff
  control.writeUInt32LE(crc32c(control.subarray(0, 292)), 292)
  writeFileSync(join(data, 'global', 'pg_control'), control)
  const segment = Buffer.alloc(8192, 1)
  control.copy(segment, 24, 0, 8)
  writeFileSync(join(data, 'pg_wal', '000000010000000000000001'), segment)
  writeFileSync(join(data, 'pg_wal', 'other'), segment)

  expect(giveNewSystemIdentifier(data)).toBe(true)
  const after = readFileSync(join(data, 'global', 'pg_control'))
  expect(after.subarray(0, 8)).not.toEqual(control.subarray(0, 8))
  expect(after.subarray(8, 292)).toEqual(control.subarray(8, 292))
  expect(after.readUInt32LE(292)).toBe(crc32c(after.subarray(0, 292)))
  const wal = readFileSync(join(data, 'pg_wal', '000000010000000000000001'))
  expect(wal.subarray(24, 32)).toEqual(after.subarray(0, 8))
  expect(readFileSync(join(data, 'pg_wal', 'other'))).toEqual(segment)
})

test('leaves what it does not know alone', () => {
  const control = Buffer.alloc(8192, 5)
  writeFileSync(join(data, 'global', 'pg_control'), control)
  expect(giveNewSystemIdentifier(data)).toBe(false)
  expect(readFileSync(join(data, 'global', 'pg_control'))).toEqual(control)
})

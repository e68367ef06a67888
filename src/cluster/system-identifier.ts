/**
 * Gives a cloned, cleanly stopped data directory an identity of its own, as initdb would have:
 * two servers with one system identifier would be taken for the same server.
 * Works on global/pg_control (the identifier is its first field, a CRC-32C its last) and on the
 * long page header that begins each WAL segment (xlp_sysid, after 24 bytes of short header);
 * see src/include/catalog/pg_control.h and src/include/access/xlog_internal.h of PostgreSQL.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readdirSync, readFileSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** The reflected polynomial of Castagnoli. */
const POLYNOMIAL = 0x82f63b78
const WAL_SEGMENT_IDENTIFIER_OFFSET = 24

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1
  return value >>> 0
})

/** Offset of the checksum in pg_control: the one place where the bytes before it sum up to it. */
function checksumOffset(control: Buffer): number | undefined {
  let state = 0xffffffff
  for (let offset = 0; offset + 4 <= control.length; offset++) {
    const sum = (state ^ 0xffffffff) >>> 0
    if (offset > 64 && offset % 4 === 0 && control.readUInt32LE(offset) === sum) return offset
    state = table[(state ^ control[offset]!) & 0xff]! ^ (state >>> 8)
  }
  return undefined
}

export function crc32c(bytes: Buffer): number {
  let state = 0xffffffff
  for (const byte of bytes) state = table[(state ^ byte) & 0xff]! ^ (state >>> 8)
  return (state ^ 0xffffffff) >>> 0
}

/** Changes the identifier; false, with nothing changed, when the files are not as expected (a big-endian machine). */
export function giveNewSystemIdentifier(dataDirectory: string): boolean {
  const controlFile = join(dataDirectory, 'global', 'pg_control')
  const control = readFileSync(controlFile)
  const offset = checksumOffset(control)
  if (offset === undefined) return false
  const old = Buffer.from(control.subarray(0, 8))
  const fresh = Buffer.from(old)
  randomBytes(4).copy(fresh) // the low half is initdb's process id and microseconds, the high half the time
  const segments = join(dataDirectory, 'pg_wal')
  for (const name of readdirSync(segments))
    if (/^[0-9A-F]{24}$/.test(name)) overwrite(join(segments, name), old, fresh)
  fresh.copy(control)
  control.writeUInt32LE(crc32c(control.subarray(0, offset)), offset)
  const file = openSync(controlFile, 'r+')
  writeSync(file, control, 0, control.length, 0)
  closeSync(file)
  return true
}

function overwrite(segment: string, old: Buffer, fresh: Buffer): void {
  const file = openSync(segment, 'r+')
  try {
    const found = Buffer.alloc(8)
    readSync(file, found, 0, 8, WAL_SEGMENT_IDENTIFIER_OFFSET)
    if (found.equals(old)) writeSync(file, fresh, 0, 8, WAL_SEGMENT_IDENTIFIER_OFFSET)
  } finally {
    closeSync(file)
  }
}

/** A position in a server's write-ahead log: parse, print, compare. Pure. Follows `pg_lsn` of PostgreSQL. */
import { engineError } from '../errors/engine-error.js'

declare const brand: unique symbol
/** Byte position in the WAL of one timeline; never to be compared between two servers. */
export type Lsn = bigint & { readonly [brand]: true }

/** `InvalidXLogRecPtr`: before every position. */
export const LSN_ZERO = 0n as Lsn

/**
 * Reads `16/B374D848`.
 * @throws REPLICATION_BAD_LSN
 */
export function parseLsn(text: string): Lsn {
  const parts = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/.exec(text)
  if (!parts) throw engineError('REPLICATION_BAD_LSN', { text })
  return ((BigInt(`0x${parts[1]}`) << 32n) | BigInt(`0x${parts[2]}`)) as Lsn
}

/** As PostgreSQL prints it: two hexadecimal halves without leading zeros. */
export function printLsn(lsn: Lsn): string {
  const high = (lsn >> 32n).toString(16)
  return `${high}/${(lsn & 0xffff_ffffn).toString(16)}`.toUpperCase()
}

/** The Int64 at `at` as a position. */
export function readLsn(bytes: Buffer, at: number): Lsn {
  return bytes.readBigUInt64BE(at) as Lsn
}

/** The greater of two positions of one server. */
export function maxLsn(a: Lsn, b: Lsn): Lsn {
  return a > b ? a : b
}

/** The byte before a position, for senders that add one themselves. */
export function beforeLsn(lsn: Lsn): Lsn {
  return (lsn === 0n ? 0n : lsn - 1n) as Lsn
}

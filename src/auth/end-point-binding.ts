/**
 * Channel binding `tls-server-end-point` (RFC 5929, section 4): the hash of the server's certificate, by the hash
 * function of the certificate's own signature, where MD5 and SHA-1 give way to SHA-256.
 *
 *   Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OID, parameters }, … }   (DER)
 *
 * @see `be_tls_get_certificate_hash` in `src/backend/libpq/be-secure-openssl.c`
 */
import { createHash } from 'node:crypto'
import type { ChannelBinding } from './scram-message.js'

/** Algorithms by the hex of their OID. */
const hashOfSignature: Readonly<Record<string, string>> = {
  '2a864886f70d010104': 'sha256', // md5WithRSAEncryption
  '2a864886f70d010105': 'sha256', // sha1WithRSAEncryption
  '2a864886f70d01010e': 'sha224',
  '2a864886f70d01010b': 'sha256',
  '2a864886f70d01010c': 'sha384',
  '2a864886f70d01010d': 'sha512',
  '2a8648ce3d0401': 'sha256', // ecdsa-with-SHA1
  '2a8648ce3d040301': 'sha224',
  '2a8648ce3d040302': 'sha256',
  '2a8648ce3d040303': 'sha384',
  '2a8648ce3d040304': 'sha512',
}

const RSASSA_PSS = '2a864886f70d01010a'

/** Hash functions named in the parameters of RSASSA-PSS. */
const hashes: Readonly<Record<string, string>> = {
  '2b0e03021a': 'sha256', // sha1
  '608648016503040204': 'sha224',
  '608648016503040201': 'sha256',
  '608648016503040202': 'sha384',
  '608648016503040203': 'sha512',
}

const known = new WeakMap<Buffer, ChannelBinding | null>()

/** The binding of a certificate in DER; undefined when its signature has no single hash function (Ed25519), so that none is defined. */
export function endPointBinding(certificate: Buffer): ChannelBinding | undefined {
  const before = known.get(certificate)
  if (before !== undefined) return before ?? undefined
  const name = hashNameOf(certificate)
  const binding: ChannelBinding | undefined =
    name === undefined
      ? undefined
      : { type: 'tls-server-end-point', bytes: createHash(name).update(certificate).digest() }
  known.set(certificate, binding ?? null)
  return binding
}

function hashNameOf(certificate: Buffer): string | undefined {
  try {
    const outer = readElement(certificate, 0)
    const body = readElement(certificate, outer.start)
    const algorithm = readElement(certificate, body.end)
    const oid = readElement(certificate, algorithm.start)
    const name = certificate.toString('hex', oid.start, oid.end)
    if (name !== RSASSA_PSS) return hashOfSignature[name]
    return pssHash(certificate, oid.end, algorithm.end)
  } catch {
    return undefined
  }
}

/** RSASSA-PSS-params ::= SEQUENCE { [0] hashAlgorithm SEQUENCE { OID } DEFAULT sha1, … } */
function pssHash(certificate: Buffer, at: number, end: number): string | undefined {
  if (at >= end) return undefined
  const parameters = readElement(certificate, at)
  if (parameters.start >= parameters.end || certificate[parameters.start] !== 0xa0) return 'sha256'
  const tagged = readElement(certificate, parameters.start)
  const algorithm = readElement(certificate, tagged.start)
  const oid = readElement(certificate, algorithm.start)
  return hashes[certificate.toString('hex', oid.start, oid.end)]
}

/** Where the content of the DER element at `at` starts and ends. @throws RangeError when it runs out */
function readElement(bytes: Buffer, at: number): { start: number; end: number } {
  const first = bytes.readUInt8(at + 1)
  let start = at + 2
  let length = first
  if (first >= 0x80) {
    const count = first & 0x7f
    length = bytes.readUIntBE(start, count)
    start += count
  }
  if (start + length > bytes.length) throw new RangeError('the element ends behind its buffer')
  return { start, end: start + length }
}

/** tls-server-end-point (RFC 5929): which hash, by the signature of the certificate. */
import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { endPointBinding } from '../../../src/auth/end-point-binding.js'

const certificate = new X509Certificate(
  readFileSync(join(import.meta.dirname, '../../../fixtures/certs/server.crt')),
).raw

/** The certificate with another OID for its signature; its length must be the same as that of ecdsa-with-SHA256. */
function signedBy(oid: string): Buffer {
  const now = Buffer.from('06082a8648ce3d040302', 'hex')
  const other = Buffer.from(`0608${oid}`, 'hex')
  const changed = Buffer.from(certificate)
  other.copy(changed, changed.lastIndexOf(now))
  return changed
}

describe('tls-server-end-point', () => {
  it.each([
    ['ecdsa-with-SHA256', '2a8648ce3d040302', 'sha256'],
    ['ecdsa-with-SHA384', '2a8648ce3d040303', 'sha384'],
    ['ecdsa-with-SHA512', '2a8648ce3d040304', 'sha512'],
    ['ecdsa-with-SHA224', '2a8648ce3d040301', 'sha224'],
  ])('%s', (_name, oid, hash) => {
    const der = signedBy(oid)
    expect(endPointBinding(der)).toEqual({
      type: 'tls-server-end-point',
      bytes: createHash(hash).update(der).digest(),
    })
  })

  it('has none for a signature that it does not know, and for what is no certificate', () => {
    expect(endPointBinding(signedBy('2a8648ce3d04037f'))).toBeUndefined()
    for (const end of [0, 1, 5, 40, certificate.length - 80]) {
      expect(endPointBinding(certificate.subarray(0, end))).toBeUndefined()
    }
  })
})

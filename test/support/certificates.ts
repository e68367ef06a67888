/** Certificates made by openssl for one test file: an authority of its own, and what it signs. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'

export interface KeyPair {
  readonly certPath: string
  readonly keyPath: string
}

export interface CertificateMaker {
  readonly caPath: string
  /** A directory for further files. */
  readonly directory: string
  /** Signed by the authority. `key` is what openssl calls the kind, `hash` that of the signature. */
  make(options: {
    name: string
    subject?: string
    alternatives?: string
    key?: 'rsa' | 'ec' | 'ed25519'
    hash?: 'sha256' | 'sha384' | 'sha512'
  }): KeyPair
}

const openssl = (args: string[]) =>
  execFileSync('openssl', args, { stdio: ['ignore', 'pipe', 'ignore'] })

const kinds = {
  rsa: ['-newkey', 'rsa:2048'],
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
  ed25519: ['-newkey', 'ed25519'],
}

/** `caKey`: kind of the authority's key, which decides how it signs. */
export function makeCertificates(caKey: 'rsa' | 'ec' | 'ed25519' = 'ec'): CertificateMaker {
  const directory = mkdtempSync(join(inject('runDirectory'), 'certs-'))
  const at = (name: string) => join(directory, name)
  const caPath = at('ca.crt')
  openssl([
    ...['req', '-x509', ...kinds[caKey], '-nodes', '-days', '30', '-subj', '/CN=test authority'],
    ...['-keyout', at('ca.key'), '-out', caPath],
  ])
  return {
    caPath,
    directory,
    make({ name, subject = `/CN=${name}`, alternatives, key = 'ec', hash = 'sha256' }) {
      const paths = { certPath: at(`${name}.crt`), keyPath: at(`${name}.key`) }
      const request = at(`${name}.csr`)
      openssl([
        ...['req', ...kinds[key], '-nodes', '-subj', subject],
        ...['-keyout', paths.keyPath, '-out', request],
      ])
      const extensions = at(`${name}.ext`)
      writeFileSync(
        extensions,
        alternatives === undefined ? '' : `subjectAltName=${alternatives}\n`,
      )
      openssl([
        ...['x509', '-req', '-in', request, '-CA', caPath, '-CAkey', at('ca.key'), '-days', '30'],
        ...['-CAcreateserial', '-extfile', extensions, '-out', paths.certPath],
        ...(caKey === 'ed25519' ? [] : [`-${hash}`]),
      ])
      return paths
    },
  }
}

export const pem = (path: string): string => readFileSync(path, 'utf8')

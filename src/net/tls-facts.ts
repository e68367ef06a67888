/** What is known of a connection by its TLS: certificates, version, and who the client's certificate says it is. */
import type { TLSSocket } from 'node:tls'

/** A client's certificate, checked against tls_client_ca_certificate. */
export interface PeerCertificate {
  /** CN of its subject; undefined when it has none, or several. */
  readonly commonName?: string
  /** URIs of its alternative names, as SPIFFE has them. */
  readonly uris: readonly string[]
}

export interface TlsFacts {
  /** DER of the certificate of the end that is the server: what channel binding binds to. */
  readonly serverCertificate?: Buffer
  /** Only of a client that showed a certificate that verified. */
  readonly peer?: PeerCertificate
  /** `TLSv1.3` */
  readonly version: string
  /** ALPN chose PostgreSQL's protocol. */
  readonly isPostgresql: boolean
}

interface Verifying {
  ssl?: { verifyError?(): (Error & { code?: string }) | null | undefined }
}

/**
 * The certificate that a client showed; nothing when it showed none and need not. Node verifies on behalf of its own
 * TLS servers only: of a bare socket the verdict must be asked.
 * @throws when it does not verify, or is missing
 */
export function peerOf(
  secured: TLSSocket,
  isRequired: boolean,
): { readonly peer?: PeerCertificate } {
  const shown = secured.getPeerX509Certificate()
  if (!shown) {
    if (isRequired) throw new Error('the client showed no certificate')
    return {}
  }
  const { ssl } = secured as unknown as Verifying
  if (typeof ssl?.verifyError !== 'function')
    throw new Error('certificates cannot be verified here')
  const refused = ssl.verifyError()
  if (refused) throw new Error(`the client's certificate was refused: ${refused.message}`)
  const { CN } = (secured.getPeerCertificate().subject ?? {}) as { CN?: unknown }
  const uris = (shown.subjectAltName ?? '')
    .split(', ')
    .flatMap((name) => (name.startsWith('URI:') ? [name.slice(4)] : []))
  return { peer: { ...(typeof CN === 'string' && isText(CN) ? { commonName: CN } : {}), uris } }
}

/** An embedded zero would let one name pass for another (CVE-2009-4034). */
const isText = (name: string): boolean => name !== '' && !name.includes('\0')

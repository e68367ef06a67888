import type { CatalogueEntry } from '../catalogue-entry.js'

/** Bytes that break protocol 3.x, and sockets that cannot be opened. */
export const wireErrors = {
  WIRE_FRAME_LENGTH: {
    sqlstate: '08P01',
    severity: 'FATAL',
    message: 'invalid length {length} of message "{tag}"',
    hint: 'the other side does not speak protocol 3, or the stream is out of step',
  },
  WIRE_FRAME_TOO_LONG: {
    sqlstate: '08P01',
    severity: 'FATAL',
    message: 'message "{tag}" of {length} bytes is longer than the limit of {limit}',
  },
  WIRE_TRUNCATED: {
    sqlstate: '08P01',
    message: 'message "{tag}" ends before its field "{field}"',
  },
  WIRE_BAD_FIELD: { sqlstate: '08P01', message: 'message "{tag}" has an invalid {field}: {value}' },
  WIRE_UNEXPECTED: { sqlstate: '08P01', message: 'message "{tag}" is not allowed {where}' },
  NET_CONNECT_FAILED: {
    sqlstate: '08001',
    severity: 'FATAL',
    message: 'could not connect to {address}: {reason}',
    hint: 'check that PostgreSQL runs there and accepts connections from this machine',
    retry: 'safe',
    exit: 4,
  },
  NET_CONNECT_TIMEOUT: {
    sqlstate: '08001',
    severity: 'FATAL',
    message: 'could not connect to {address} within {timeoutMs} ms',
    hint: 'check the address and the firewall, or raise the connect time-out',
    retry: 'safe',
    exit: 4,
  },
  NET_HOST_UNKNOWN: {
    sqlstate: '08001',
    severity: 'FATAL',
    message: 'could not resolve host name "{host}": {reason}',
    hint: 'check the spelling of the host and the name service',
    retry: 'safe',
    exit: 4,
  },
  NET_LISTEN_FAILED: {
    sqlstate: '55006',
    severity: 'FATAL',
    message: 'could not listen on {address}: {reason}',
    hint: 'choose another address or port, or stop the process that uses it',
    exit: 4,
  },
  NET_TLS_FAILED: {
    sqlstate: '08001',
    severity: 'FATAL',
    message: 'could not set up TLS: {reason}',
    hint: 'check the certificates, and that both sides allow TLS 1.2 or newer',
    retry: 'safe',
    exit: 4,
  },
  NET_HTTP_FAILED: {
    sqlstate: '08001',
    message: 'no answer from {host}: {reason}',
    hint: 'check the address and that the service runs there',
    retry: 'safe',
    exit: 4,
  },
  NET_TLS_MATERIAL: {
    sqlstate: 'F0000',
    severity: 'FATAL',
    message: 'could not use {what}: {reason}',
    hint: 'both must be PEM, and the key that of the certificate; openssl x509 -in FILE -text shows what a file holds',
    exit: 3,
  },
} as const satisfies Record<string, CatalogueEntry>

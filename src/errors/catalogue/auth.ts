import type { CatalogueEntry } from '../catalogue-entry.js'

/** Who you are. */
export const authErrors = {
  AUTH_FAILED: {
    sqlstate: '28P01',
    severity: 'FATAL',
    message: 'password authentication failed for user "{user}"',
    hint: 'check the password, and that users.toml has this user for this database',
    exit: 4,
  },
  AUTH_SCRAM_MALFORMED: {
    sqlstate: '08P01',
    severity: 'FATAL',
    message: 'malformed SCRAM message: {reason}',
    exit: 4,
  },
  AUTH_SCRAM_UNSUPPORTED: {
    sqlstate: '0A000',
    severity: 'FATAL',
    message: 'client uses {what} in SCRAM authentication, but it is not supported',
    exit: 4,
  },
  AUTH_BINDING_DOWNGRADE: {
    sqlstate: '28000',
    severity: 'FATAL',
    message: 'SCRAM channel binding negotiation error',
    hint: 'the client could bind but saw no offer of SCRAM-SHA-256-PLUS: look for who changes the connection on its way',
    exit: 4,
  },
  AUTH_SERVER_UNPROVED: {
    sqlstate: '28000',
    severity: 'FATAL',
    message: 'the server did not prove that it knows the password: {reason}',
    hint: 'check that this is the server that you mean',
    exit: 4,
  },
  AUTH_KEYS_FOREIGN: {
    sqlstate: '28000',
    message:
      'the server keeps another SCRAM verifier of the user than the one that the client proved',
    hint: 'give all servers the same verifier (ALTER ROLE … PASSWORD with the verifier itself), or write the password into users.toml',
    exit: 4,
  },
  AUTH_BINDING_REQUIRED: {
    sqlstate: '28000',
    message: 'channel binding is required, but {reason}',
    hint: 'the server must offer SCRAM-SHA-256-PLUS over TLS; or use channel_binding=prefer',
    exit: 4,
  },
  AUTH_NO_ENTRY: {
    sqlstate: '28000',
    severity: 'FATAL',
    message:
      'no pg_hba.conf entry for host "{address}", user "{user}", database "{database}", {encryption}',
    hint: 'add a rule to hba or hba_file in pgdog.toml; the first that fits counts',
    exit: 4,
  },
  AUTH_REJECTED: {
    sqlstate: '28000',
    severity: 'FATAL',
    message:
      'pg_hba.conf rejects connection for host "{address}", user "{user}", database "{database}", {encryption}',
    hint: 'hba or hba_file in pgdog.toml has a rule with method reject for this',
    exit: 4,
  },
  AUTH_CERTIFICATE_MISSING: {
    sqlstate: '28000',
    severity: 'FATAL',
    message: 'connection requires a valid client certificate',
    hint: 'connect with sslcert and sslkey, signed by an authority of tls_client_ca_certificate',
    exit: 4,
  },
  AUTH_CERTIFICATE_FAILED: {
    sqlstate: '28000',
    severity: 'FATAL',
    message: 'certificate authentication failed for user "{user}"',
    hint: 'the CN of the certificate must be the name of the user, or what identity says in users.toml',
    exit: 4,
  },
  AUTH_PLAIN_UNSAFE: {
    sqlstate: '28000',
    severity: 'FATAL',
    message: 'the password of user "{user}" is asked for in clear, which needs TLS',
    hint: 'connect with sslmode=require, or set passthrough_auth = "enabled_plain"',
    exit: 4,
  },
  AUTH_PASSWORD_CHANGED: {
    sqlstate: '28P01',
    severity: 'FATAL',
    message: 'password authentication failed for user "{user}"',
    hint: 'passthrough_auth = "enabled_allow_change" follows changed passwords',
    exit: 4,
  },
  AUTH_UNCHECKED: {
    sqlstate: '28000',
    severity: 'FATAL',
    message: 'the server let user "{user}" in without asking for the password',
    hint: 'passthrough_auth needs scram-sha-256, md5 or password in pg_hba.conf of the server, for the address of the proxy',
    exit: 4,
  },
  AUTH_QUERY_FAILED: {
    sqlstate: '28000',
    severity: 'FATAL',
    message: 'the password of user "{user}" could not be looked up',
    hint: 'see that the user with auth_query can connect and may run its query',
    exit: 4,
  },
  SERVER_CREDENTIALS_FAILED: {
    sqlstate: '28000',
    message: 'no credentials from {source}: {reason}',
    hint: 'the server was not asked; credentials are fetched again for the next connection',
    retry: 'safe',
    exit: 4,
  },
  AUTH_USER_LIMIT: {
    sqlstate: '53300',
    severity: 'FATAL',
    message: 'too many connections for role "{user}"',
    hint: 'raise max_user_client_connections (now {limit}), or close connections that are not used',
    retry: 'safe',
  },
} as const satisfies Record<string, CatalogueEntry>

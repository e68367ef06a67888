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
} as const satisfies Record<string, CatalogueEntry>

import type { CatalogueEntry } from '../catalogue-entry.js'

export const connectErrors = {
  CONNINFO_INVALID: {
    sqlstate: '08001',
    message: '{message}',
    hint: 'write it as "host=a,b port=5432,5433 dbname=d user=u" or as postgres://u@a:5432,b:5433/d',
    exit: 2,
  },
  CONNINFO_UNSUPPORTED: {
    sqlstate: '0A000',
    message: 'connection option {option}={value} is not supported',
    hint: 'leave {option} out, or use {instead}',
    exit: 2,
  },
  CONNECT_FAILED: {
    sqlstate: '08001',
    message: '{message}',
    hint: 'check that the server runs, and that host and port are right',
    retry: 'safe',
    exit: 4,
  },
  CONNECT_TIMEOUT: {
    sqlstate: '08001',
    message: '{message}',
    hint: 'raise connect_timeout, or check that nothing between here and the server drops packets',
    retry: 'safe',
    exit: 4,
  },
  CONNECT_REJECTED: {
    sqlstate: '08004',
    message: '{message}',
    hint: 'check user, password and pg_hba.conf of the server; passwords come from the connection string, PGPASSWORD or .pgpass',
    exit: 4,
  },
  CONNECT_NO_DATABASE: {
    sqlstate: '3D000',
    message: '{message}',
    hint: 'create the database first, or name another with dbname',
    exit: 4,
  },
  CONNECTION_LOST: {
    sqlstate: '08006',
    message: 'connection to {where} was lost: {reason}',
    hint: 'look into the log of that server; the statement may or may not have been carried out',
    exit: 4,
  },
  SERVER_ERROR: {
    sqlstate: 'XX000',
    message: '{where}: {message}',
    exit: 1,
  },
} as const satisfies Record<string, CatalogueEntry>

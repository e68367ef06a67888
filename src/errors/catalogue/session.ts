import type { CatalogueEntry } from '../catalogue-entry.js'

/** A client's conversation, and the servers that it talks to. */
export const sessionErrors = {
  SERVER_SAID_NO: { sqlstate: 'XX000', message: '{message}', retry: 'unknown' },
  SERVER_LOST: {
    sqlstate: '08006',
    message: 'connection to server {server} was lost',
    hint: 'the statement may or may not have run; check before you repeat it',
  },
  SERVER_ENDED: {
    sqlstate: '57P01',
    message: 'server {server} ended the connection: {reason}',
    retry: 'safe',
  },
  SERVER_CLOSED_BY_US: {
    sqlstate: '08003',
    message: 'connection to server {server} was closed',
    retry: 'safe',
  },
  SERVER_OUT_OF_STEP: {
    sqlstate: '08P01',
    message: 'server {server} broke the protocol: {reason}',
  },
} as const satisfies Record<string, CatalogueEntry>

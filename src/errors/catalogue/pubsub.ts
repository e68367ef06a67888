import type { CatalogueEntry } from '../catalogue-entry.js'

/** LISTEN through pools: what ends a listening client, and why one cannot listen. */
export const pubsubErrors = {
  PUBSUB_LOST: {
    sqlstate: '57P01',
    message: 'terminating connection because notifications may have been missed: {reason}',
    hint: 'connect again, LISTEN again, and then read anew what the notifications speak of',
  },
  PUBSUB_MOVED: {
    sqlstate: '57P01',
    message: 'server {server} is no longer the primary of shard 0',
    hint: 'connect again, LISTEN again, and then read anew what the notifications speak of',
  },
  PUBSUB_SILENT: {
    sqlstate: '08006',
    message: 'server {server} did not answer within {limit} ms',
    hint: 'check the network path and the load of the server, or raise healthcheck_timeout',
  },
  PUBSUB_NOT_HEARD: {
    sqlstate: '08006',
    message: 'the connection that listens for clients of database "{database}" was lost',
    hint: 'send LISTEN again',
    retry: 'safe',
  },
  PUBSUB_NO_PRIMARY: {
    sqlstate: '08001',
    message: 'no primary of shard 0 of database "{database}" is known to listen on',
    hint: 'a promotion may be under way: send LISTEN again, or look at SHOW POOLS on the admin database',
    retry: 'safe',
  },
  PUBSUB_NO_ROOM: {
    sqlstate: '53300',
    message:
      'timed out after {limit} ms waiting for room for the connection that listens for clients of database "{database}"',
    hint: 'raise max_db_connections or max_user_connections, which count it too',
    retry: 'safe',
  },
  PUBSUB_BEHIND: {
    sqlstate: '53400',
    message: 'terminating connection because {limit} notifications wait for the client',
    hint: 'read from the connection more often, keep transactions short while listening, or raise pub_sub_channel_size',
  },
  PUBSUB_ENCODING: {
    sqlstate: '22P05',
    message:
      'terminating connection because a notification on channel "{channel}" cannot be written in client encoding {encoding}',
    hint: 'use client_encoding UTF8 on connections that listen',
  },
  PUBSUB_PREPARE: {
    sqlstate: '0A000',
    message: 'cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY',
  },
  PUBSUB_CHANNELS: {
    sqlstate: '0A000',
    message: 'pg_listening_channels() cannot be answered in this statement',
    hint: 'send SELECT pg_listening_channels() alone as a simple query; listeners are kept by the proxy, not by the server',
  },
} as const satisfies Record<string, CatalogueEntry>

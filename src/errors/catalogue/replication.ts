import type { CatalogueEntry } from '../catalogue-entry.js'

/** Slots, streams and the bytes of pgoutput. */
export const replicationErrors = {
  REPLICATION_TRUNCATED: {
    sqlstate: '08P01',
    message: 'replication message "{tag}" ends before its field "{field}"',
    hint: 'the stream is out of step: start the job again',
  },
  REPLICATION_BAD_FIELD: {
    sqlstate: '08P01',
    message: 'replication message "{tag}" has an invalid {field}: {value}',
    hint: 'the stream is out of step, or the server speaks a newer pgoutput protocol',
  },
  REPLICATION_UNKNOWN_MESSAGE: {
    sqlstate: '08P01',
    message: 'unknown replication message "{tag}"',
    hint: 'the server speaks a newer pgoutput protocol than was asked for',
  },
  REPLICATION_UNKNOWN_RELATION: {
    sqlstate: '08P01',
    message: 'replication message "{tag}" names relation {oid}, which was not announced',
  },
  REPLICATION_BAD_LSN: { sqlstate: '22P02', message: 'invalid LSN "{text}"' },
  REPLICATION_SLOT: {
    sqlstate: '55000',
    message: 'could not create replication slot "{slot}" on {server}: {reason}',
    hint: 'see that wal_level is logical, that max_replication_slots and max_wal_senders leave room, and that the user has REPLICATION',
    exit: 5,
  },
  REPLICATION_SLOT_WAITS: {
    sqlstate: '55006',
    message: 'replication slot "{slot}" on {server} is not ready after {waitedMs} ms',
    hint: 'a transaction that was open before it must end first; see pg_stat_activity.xact_start',
    retry: 'safe',
    exit: 5,
  },
  REPLICATION_SLOT_LOST: {
    sqlstate: '55000',
    message: 'replication slot "{slot}" on {server} has lost WAL that it needs',
    hint: 'the server was told to keep no more (max_slot_wal_keep_size); what leans on the slot must start over',
    exit: 6,
  },
  REPLICATION_STREAM_LOST: {
    sqlstate: '08006',
    message: 'the replication stream of slot "{slot}" on {server} ended: {reason}',
    retry: 'safe',
    exit: 6,
  },
} as const satisfies Record<string, CatalogueEntry>

import type { CatalogueEntry } from '../catalogue-entry.js'

/** Commit of a transaction that wrote on several shards. */
export const twoPhaseErrors = {
  TWO_PHASE_NOT_READY: {
    sqlstate: '0A000',
    message: 'a transaction cannot write on several shards of "{database}": {reason}',
    hint: 'run pgshard setup, and set max_prepared_transactions above 0 on every shard; or keep each transaction on one shard',
    retry: 'unsafe',
    exit: 5,
  },
  TWO_PHASE_UNPREPARABLE: {
    sqlstate: '0A000',
    message: 'could not commit on all shards: shard {shard} refuses to prepare: {reason}',
    hint: 'use temporary objects, NOTIFY, LISTEN, cursors WITH HOLD and exported snapshots on one shard only in such a transaction',
    retry: 'unsafe',
  },
  TWO_PHASE_ROLLED_BACK: {
    sqlstate: '40001',
    message: 'could not commit on all shards: {reason}',
    hint: 'nothing was committed on any shard; run the transaction again',
    retry: 'safe',
  },
  TWO_PHASE_UNKNOWN: {
    sqlstate: '40003',
    message: 'the outcome of the transaction is not known: shard {shard} was lost while it decided',
    hint: 'recovery brings all shards to the same outcome; look at the data before you repeat it',
    retry: 'unknown',
  },
} as const satisfies Record<string, CatalogueEntry>

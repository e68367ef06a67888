import type { CatalogueEntry } from '../catalogue-entry.js'

/** Rows of several shards made one answer: what cannot be compared or combined, and PostgreSQL's own range errors. */
export const mergeErrors = {
  MERGE_ORDER_TYPE: {
    sqlstate: '0A000',
    message: 'rows of several shards cannot be ordered by column "{column}" of type {type}',
    hint: 'pin the statement to one sharding key, or order by a column of a built-in scalar type',
    exit: 5,
  },
  MERGE_COMBINE_TYPE: {
    sqlstate: '0A000',
    message: '{aggregate} of type {type} cannot be combined over several shards',
    hint: 'pin the statement to one sharding key, or cast the argument to a built-in type',
    exit: 5,
  },
  MERGE_VALUE_FORM: {
    sqlstate: '0A000',
    message: 'cannot compare a value of type {type} in the form in which the server writes it',
    hint: 'SET DateStyle TO ISO, IntervalStyle TO postgres and bytea_output TO hex',
    exit: 5,
  },
  MERGE_ENCODING: {
    sqlstate: '0A000',
    message:
      'text of several shards cannot be ordered under client_encoding {client} over databases in {server}',
    hint: 'SET client_encoding TO that of the databases',
    exit: 5,
  },
  MERGE_OUT_OF_RANGE: {
    sqlstate: '22003',
    message: '{what}',
    hint: 'cast the argument of the aggregate to numeric or to double precision',
    exit: 5,
  },
  MERGE_TOO_LARGE: {
    sqlstate: '54000',
    message: 'more than {limit} bytes of rows of several shards would have to be held in memory',
    hint: 'narrow the statement, or pin it to one sharding key',
    exit: 5,
  },
} as const satisfies Record<string, CatalogueEntry>

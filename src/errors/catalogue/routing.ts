import type { CatalogueEntry } from '../catalogue-entry.js'

export const routingErrors = {
  KEY_INVALID: {
    sqlstate: '22P02',
    message: 'invalid input syntax for type {type}: "{value}"',
    exit: 5,
  },
  KEY_OUT_OF_RANGE: {
    sqlstate: '22003',
    message: 'value "{value}" is out of range for type {type}',
    exit: 5,
  },
  KEY_DATE_OUT_OF_RANGE: {
    sqlstate: '22008',
    message: 'date/time field value out of range: "{value}"',
    exit: 5,
  },
  KEY_AMBIGUOUS: {
    sqlstate: '0A000',
    message: 'cannot place sharding key of type {type} written as "{value}"',
    hint: '{advice}',
    exit: 5,
  },
  KEY_BINARY_INVALID: {
    sqlstate: '22P03',
    message: 'incorrect binary data format for sharding key of type {type}',
    exit: 5,
  },
  KEY_UNMAPPED: {
    sqlstate: '23514',
    message: 'no shard is configured for value "{value}" of sharding key "{column}"',
    hint: 'map the value in [[sharded_mappings]], or give the mapping a default',
    exit: 5,
  },
  KEY_NULL: {
    sqlstate: '23514',
    message: 'no shard is configured for NULL in sharding key "{column}"',
    hint: 'map NULL in [[sharded_mappings]], or give the mapping a default',
    exit: 5,
  },
  KEY_DIMENSIONS: {
    sqlstate: '22000',
    message: 'sharding key "{column}" has {given} dimensions, its centroids have {wanted}',
    hint: 'give vectors of the length of the centroids in [[sharded_tables]]',
    exit: 5,
  },
  KEY_HASHER_TYPE: {
    sqlstate: '0A000',
    message: 'hasher sha1 cannot be used for sharding key "{column}" of type {type}',
    hint: 'use bigint, integer, smallint, uuid, text, varchar or bpchar, or hasher postgres',
    exit: 3,
  },
  STATEMENT_TOO_LONG: {
    sqlstate: '54000',
    message: 'statement of {size} characters is longer than the {limit} that can be routed',
    hint: 'load large data with COPY, or send it in several statements',
    exit: 5,
  },
  STATEMENT_TOO_COMPLEX: {
    sqlstate: '54001',
    message: 'statement is nested too deeply to be routed',
    hint: 'write the expression with fewer levels of parentheses',
    exit: 5,
  },
  ROUTE_UNSUPPORTED: {
    sqlstate: '0A000',
    message: '{what} over several shards is not supported',
    hint: '{advice}',
    exit: 5,
  },
  ROUTE_REFERENCE_WRITE: {
    sqlstate: '0A000',
    message: 'writing to reference table "{table}", which stands on every shard, is not supported',
    hint: 'run the statement on each shard in its own connection, with the same values',
    exit: 5,
  },
  ROUTE_REFERENCE_UNSTEADY: {
    sqlstate: '0A000',
    message:
      'writing to reference table "{table}", which stands on every shard, with {what} is not supported: the shards could differ',
    hint: 'compute the values first, and write them as literals or parameters',
    exit: 5,
  },
  ROUTE_CONFLICT: {
    sqlstate: '0A000',
    message:
      'ON CONFLICT on "{arbiter}" of sharded table "{table}" is not supported: a row of another shard may be in conflict',
    hint: 'add the sharding key to the constraint, or name it in local_constraints when holding per shard is enough',
    exit: 5,
  },
  ROUTE_INSERT_SPLIT: {
    sqlstate: '0A000',
    message: 'an INSERT into table "{table}" whose rows go to several shards is not supported',
    hint: 'insert the rows of each shard in a statement of their own, or use COPY',
    exit: 5,
  },
  ROUTE_KEY_MISSING: {
    sqlstate: '0A000',
    message: 'the sharding key "{column}" of table "{table}" has no value in this INSERT',
    hint: 'name the column and give it a literal or a parameter',
    exit: 5,
  },
  ROUTE_KEY_TYPE: {
    sqlstate: '0A000',
    message: 'the sharding key "{column}" of table "{table}" is {found}, not of type {type}',
    hint: 'give its type as data_type in [[sharded_tables]], or shard by another column',
    exit: 5,
  },
  ROUTE_KEY_UPDATE: {
    sqlstate: '0A000',
    message: 'changing the sharding key "{column}" of table "{table}" {why} is not supported',
    hint: 'delete the row and insert it with the new key',
    exit: 5,
  },
  ROUTE_CONSTRAINT: {
    sqlstate: '0A000',
    message:
      'constraint "{constraint}" of sharded table "{table}" cannot be kept over several shards',
    hint: 'add the sharding key to it, or name it in local_constraints when holding per shard is enough',
    exit: 5,
  },
  ROUTE_RELATION_UNKNOWN: {
    sqlstate: '42P01',
    message: 'relation "{relation}" does not exist',
    hint: 'when it was just created past the proxy, send RELOAD to the admin database',
    exit: 5,
  },
  ROUTE_RELATION_UNCOMMITTED: {
    sqlstate: '0A000',
    message:
      '{reason}, or it was made in this transaction, which is not supported over several shards',
    hint: 'COMMIT what changes the schema first; statements of one string are one transaction',
    exit: 5,
  },
  ROUTE_SCHEMA_UNCOMMITTED: {
    sqlstate: '0A000',
    message:
      'a read over several shards behind ALTER, DROP or CREATE in the same transaction is not supported',
    hint: 'COMMIT what changes the schema first; statements of one string are one transaction',
    exit: 5,
  },
  ROUTE_KEYS_UNCOMMITTED: {
    sqlstate: '0A000',
    message:
      'a statement for rows of one shard behind a dropped, renamed or replaced column or view in the same transaction is not supported',
    hint: 'COMMIT what changes the schema first; statements of one string are one transaction',
    exit: 5,
  },
  ROUTE_HINT_INVALID: {
    sqlstate: '22023',
    message: 'routing hint {hint} is not valid: {reason}',
    hint: 'write /* pgshard_shard: 0 */, /* pgshard_sharding_key: value */ or /* pgshard_role: primary */',
    exit: 5,
  },
  PLUGIN_CONTRADICTS: {
    sqlstate: '22023',
    message: 'plugin "{plugin}" names shard {shard}, but the statement needs shard {needed}',
    hint: 'mend the plugin: it must agree with the sharding key in the statement',
    exit: 5,
  },
  ROUTE_HINT_CONTRADICTS: {
    sqlstate: '22023',
    message: 'the routing hint names shard {hinted}, but the statement needs shard {needed}',
    hint: 'take the hint out, or make it agree with the sharding key in the statement',
    exit: 5,
  },
  ROUTE_HINT_PARTS: {
    sqlstate: '22023',
    message: 'the routing hint names shard {hinted}, but {why}',
    hint: 'take the hint out: the rows find their shards by themselves',
    exit: 5,
  },
  ROUTE_FUNCTIONS_APART: {
    sqlstate: '0A000',
    message: 'functions {first}() and {second}() run on different shards',
    hint: 'call them in two statements',
    exit: 5,
  },
  ROUTE_FUNCTION_ARGUMENT: {
    sqlstate: '0A000',
    message: 'argument {position} of function {name}() decides its shard and cannot be read',
    hint: 'write it as a literal or a parameter, by position',
    exit: 5,
  },
} as const satisfies Record<string, CatalogueEntry>

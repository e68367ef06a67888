import type { CatalogueEntry } from '../catalogue-entry.js'

/** No server or no room for you now, and what the console says. Messages name host and port, never a password. */
export const poolErrors = {
  POOL_CHECKOUT_TIMEOUT: {
    sqlstate: '53300',
    message:
      'timed out after {timeoutMs} ms waiting for a server connection to {address} ({lent} of {maxSize} in use, {waiting} waiting)',
    hint: 'raise default_pool_size or checkout_timeout, or shorten transactions; SHOW CLIENTS on the admin database says who holds servers',
    retry: 'safe',
  },
  POOL_CHECKOUT_ABORTED: {
    sqlstate: '57014',
    message: 'canceling statement due to user request',
    retry: 'safe',
  },
  POOL_CHECKOUT_ENDED: {
    sqlstate: 'XX000',
    message: 'a server was given back twice',
    hint: 'please report this with the log of pgshard',
  },
  POOL_CONNECT_FAILED: {
    sqlstate: '08001',
    message: 'could not connect to {what} at {address}: {reason}',
    hint: 'check that PostgreSQL runs there and accepts user "{user}" on database "{database}"',
    retry: 'safe',
    exit: 4,
  },
  POOL_CONNECT_TIMEOUT: {
    sqlstate: '08001',
    message: 'could not connect to {what} at {address} within {timeoutMs} ms',
    hint: 'check the network path and that PostgreSQL runs there, or raise connect_timeout',
    retry: 'safe',
    exit: 4,
  },
  POOL_OFFLINE: {
    sqlstate: '57P03',
    message: 'the pool of {address} is closed',
    hint: 'the proxy is stopping, or a reload removed this database; connect again',
    retry: 'safe',
  },
  POOL_ALL_REPLICAS_DOWN: {
    sqlstate: '08001',
    message: 'all hosts of {what} that may answer this are down: {hosts}',
    hint: 'SHOW POOLS on the admin database says why each is banned or unhealthy',
    retry: 'safe',
  },
  POOL_NO_PRIMARY: {
    sqlstate: '57P03',
    message: '{what} has no primary now: {hosts}',
    hint: 'promote a replica; with role = "auto" pgshard notices within lsn_check_interval',
    retry: 'safe',
  },
  POOL_HEALTHCHECK: {
    sqlstate: '08006',
    message: 'health check of {address} failed: {reason}',
    hint: 'the server answers too slowly or not at all; healthcheck_timeout bounds the check',
    retry: 'safe',
  },
  POOL_BANNED: {
    sqlstate: '57P03',
    message: 'the pool of {address} is banned by an operator',
    hint: 'UNBAN on the admin database lifts it',
    retry: 'safe',
  },
  POOL_LAYOUT_CHANGED: {
    sqlstate: '40001',
    message: 'the shards of database "{database}" changed while the statement waited for a server',
    hint: 'nothing was done; run the transaction again',
    retry: 'safe',
  },
  PROXY_LAYOUT_BUSY: {
    sqlstate: '55006',
    message:
      'the shards of database "{database}" cannot change now: {count} servers are still in use after {timeoutMs} ms',
    hint: 'SHOW CLIENTS says who keeps a server and why; end those clients, or PAUSE first, and RELOAD again',
    retry: 'safe',
  },
  POOL_HOLDERS_DEADLOCK: {
    sqlstate: '40001',
    message:
      'transactions over several shards of database "{database}" wait for each other\'s server connections',
    hint: 'nothing of this transaction was committed; run it again, or raise default_pool_size',
    retry: 'safe',
  },
  POOL_SUPERSEDED: {
    sqlstate: '57P01',
    message: 'the server at {address} was replaced as primary while the client worked on it',
    hint: 'what was not committed is lost; run the transaction again, it goes to the new primary',
    retry: 'unknown',
  },
  POOL_NO_SUCH_SHARD: {
    sqlstate: '22023',
    message: 'database "{database}" has no shard {shard}',
    hint: 'shards are numbered from 0 to {last}',
    retry: 'safe',
  },
  ADMIN_SYNTAX: {
    sqlstate: '42601',
    message: 'syntax error in admin command: {reason}',
    hint: 'SHOW HELP lists the commands',
    retry: 'safe',
  },
  ADMIN_UNSUPPORTED: {
    sqlstate: '0A000',
    message: '{command} is not available on the admin database',
    hint: '{instead}',
    retry: 'safe',
  },
  ADMIN_UNKNOWN_SETTING: {
    sqlstate: '42704',
    message: 'unrecognized configuration parameter "{name}"',
    hint: 'SHOW CONFIG lists the settings of the proxy, SHOW HELP the commands',
    retry: 'safe',
  },
  ADMIN_NO_SUCH: {
    sqlstate: '42704',
    message: '{kind} "{name}" does not exist',
    hint: '{where} lists what there is; names with capitals need double quotes',
    retry: 'safe',
  },
  ADMIN_NO_STATEMENT: {
    sqlstate: '26000',
    message: '{what} "{name}" does not exist',
    retry: 'safe',
  },
  ADMIN_TASK: {
    sqlstate: '55000',
    message: '{what} could not be done: {reason}',
    hint: 'SHOW TASKS lists the tasks; pgshard reshard status and plan say more',
    retry: 'unknown',
  },
  ADMIN_RELOAD_FAILED: {
    sqlstate: 'F0000',
    message: 'reload failed, the old configuration stays: {reason}',
    hint: 'mend the file, try it with "pgshard config check", and RELOAD again',
    retry: 'safe',
  },
  PROXY_CLIENT_LIMIT: {
    sqlstate: '53300',
    severity: 'FATAL',
    message: 'no more connections allowed (max_client_conn)',
    hint: 'raise max_client_conn (now {limit}), or close connections that are not used',
    retry: 'safe',
  },
  PROXY_DISABLED: {
    sqlstate: '57P03',
    severity: 'FATAL',
    message: 'database "{database}" is disabled',
    hint: 'ENABLE on the admin database lets clients in again',
    retry: 'safe',
  },
  PROXY_NO_DATABASE: {
    sqlstate: '3D000',
    severity: 'FATAL',
    message: 'database "{database}" does not exist',
    hint: 'the databases of the configuration are listed by SHOW DATABASES on the admin database',
    retry: 'safe',
  },
  PROXY_NOT_READY: {
    sqlstate: '57P03',
    message: 'the schema of sharded database "{database}" is not known yet: {reason}',
    hint: 'the proxy reads it again every few seconds; see to it that shard 0 can be reached',
    retry: 'safe',
  },
  PROXY_PID_FILE: {
    sqlstate: '58030',
    message: 'could not write pid file "{path}": {reason}',
    hint: 'name a file in a directory that this user may write to',
    exit: 3,
  },
} as const satisfies Record<string, CatalogueEntry>

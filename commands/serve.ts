/** `pgshard serve`: the proxy. */
import { Flags } from '@oclif/core'
import { BaseCommand } from '../src/cli/base-command.js'
import { configFlags, configOptions } from '../src/cli/flags.js'
import { engineError } from '../src/errors/engine-error.js'

export default class Serve extends BaseCommand {
  static override summary = 'Run the proxy: pooling, routing to shards, admin console.'
  static override description =
    'Reads pgdog.toml and users.toml, or databases from --database-url. Prints "listening on HOST:PORT" to stderr when it accepts. ' +
    'SIGHUP reloads; SIGUSR2 replaces the workers one by one; SIGTERM and SIGINT let transactions finish (shutdown_timeout), a second signal ends them. Exit 0 drained, 1 forced.'
  static override examples = [
    '<%= config.bin %> serve',
    '<%= config.bin %> serve --config pgdog.toml --users users.toml --port 6432',
    '<%= config.bin %> serve --workers auto',
    "<%= config.bin %> serve -d 'postgres://app:secret@127.0.0.1:5432/app'",
  ]
  static override enableJsonFlag = false

  static override flags = {
    ...configFlags,
    host: Flags.string({ char: 'h', description: 'address to listen on', helpValue: 'HOST' }),
    port: Flags.integer({
      char: 'p',
      description: 'port to listen on; 0: a free one',
      min: 0,
      max: 65_535,
    }),
    workers: Flags.custom<number | 'auto'>({
      description: 'processes that share the port and every limit; auto: one a core',
      helpValue: 'N|auto',
      parse: async (text) => readWorkers(text),
    })(),
    'pid-file': Flags.string({
      description: 'file that gets the process id, removed at the end',
      helpValue: 'FILE',
    }),
    'log-level': Flags.option({
      description: 'least severe log lines written',
      options: ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const,
    })(),
    'log-format': Flags.option({
      description: 'form of log lines',
      options: ['text', 'json'] as const,
    })(),
    trace: Flags.boolean({
      description: "every message of clients on stderr, in libpq's trace form (not after TLS)",
    }),
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(Serve)
    const { serveWorkers } = await import('../src/workers/serve-workers.js')
    const toStderr = (line: string) => void process.stderr.write(`${line}\n`)
    const logLevel =
      flags['log-level'] ?? (flags.quiet ? 'error' : flags.verbose ? 'debug' : undefined)
    const code = await serveWorkers({
      load: configOptions(flags),
      version: this.config.version,
      announce: toStderr,
      ...(flags.host === undefined ? {} : { host: flags.host }),
      ...(flags.port === undefined ? {} : { port: flags.port }),
      ...(flags.workers === undefined ? {} : { workers: flags.workers }),
      ...(flags['pid-file'] === undefined ? {} : { pidFile: flags['pid-file'] }),
      ...(logLevel === undefined ? {} : { logLevel }),
      ...(flags['log-format'] === undefined ? {} : { logFormat: flags['log-format'] }),
      ...(flags.trace ? { trace: toStderr } : {}),
    })
    process.exit(code)
  }
}

/** @throws USAGE */
function readWorkers(text: string): number | 'auto' {
  if (text === 'auto') return text
  const count = Number(text)
  if (/^\d{1,4}$/.test(text) && count <= 1024) return count
  throw engineError('USAGE', {
    message: `--workers takes a number up to 1024 or auto, not "${text}"`,
  })
}

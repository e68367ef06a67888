/** `pgshard serve`: the proxy. */
import { Flags } from '@oclif/core'
import { BaseCommand } from '../src/cli/base-command.js'
import { configFlags, configOptions } from '../src/cli/flags.js'

export default class Serve extends BaseCommand {
  static override summary = 'Run the proxy: pooling, routing to shards, admin console.'
  static override description =
    'Reads pgdog.toml and users.toml, or databases from --database-url. Prints "listening on HOST:PORT" to stderr when it accepts. ' +
    'SIGHUP reloads; SIGTERM and SIGINT let transactions finish (shutdown_timeout), a second signal ends them. Exit 0 drained, 1 forced.'
  static override examples = [
    '<%= config.bin %> serve',
    '<%= config.bin %> serve --config pgdog.toml --users users.toml --port 6432',
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
    workers: Flags.integer({ description: 'processes; only 1 for now', min: 1 }),
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
    const { serve } = await import('../src/proxy/serve.js')
    const toStderr = (line: string) => void process.stderr.write(`${line}\n`)
    const logLevel =
      flags['log-level'] ?? (flags.quiet ? 'error' : flags.verbose ? 'debug' : undefined)
    const code = await serve({
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

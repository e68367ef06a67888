/**
 * What every command has in common: shared flags, `--json`, one-line errors, exit codes, progress and Ctrl-C.
 * A command parses its flags, imports its engine room inside `run()` (so that `--help` stays fast), calls it once and returns the typed result.
 *
 *   stdout  results only: `this.log` for text, the returned value (or `this.emit`, one object a line) with `--json`
 *   stderr  progress, notes, errors
 */
import { Command, Flags } from '@oclif/core'
import { type Interruptible, interruptible } from './interrupt.js'
import { openProgress, type ProgressBoard } from './progress.js'
import { describeFailure, exitOf, failureJson, renderFailure } from './report-error.js'

export abstract class BaseCommand extends Command {
  static override enableJsonFlag = true

  static override baseFlags = {
    json: Flags.boolean({
      helpGroup: 'GLOBAL',
      description: 'the result on stdout as JSON, one object a line; errors too',
    }),
    quiet: Flags.boolean({
      helpGroup: 'GLOBAL',
      description: 'no progress and no notes on stderr; errors stay',
    }),
    verbose: Flags.boolean({
      helpGroup: 'GLOBAL',
      description: 'say more on stderr; with an error its code and causes',
    }),
    'no-color': Flags.boolean({
      helpGroup: 'GLOBAL',
      description: 'no colours (as the environment variable NO_COLOR)',
    }),
  }

  /** Set by `before --`; valid before and after parsing. */
  protected get quiet(): boolean {
    return this.#has('--quiet')
  }

  protected get verbose(): boolean {
    return this.#has('--verbose')
  }

  /** Whether to colour what goes to a stream. */
  protected colorOn(stream: { isTTY?: boolean } = process.stdout): boolean {
    // NO_COLOR counts when present and not empty (no-color.org).
    return stream.isTTY === true && !process.env['NO_COLOR'] && !this.#has('--no-color')
  }

  /** A note on stderr, silent with `--quiet`. Never a result. */
  protected note(line: string): void {
    if (!this.quiet) process.stderr.write(`${line}\n`)
  }

  /** One object of a stream of results: a line of JSON with `--json`, else nothing. */
  protected emit(object: unknown): void {
    if (this.jsonEnabled()) process.stdout.write(`${JSON.stringify(object)}\n`)
  }

  /** Bars on a terminal, plain lines elsewhere, nothing with `--quiet`; always on stderr. Close it. */
  protected progress(): ProgressBoard {
    return openProgress({ quiet: this.quiet })
  }

  /**
   * Ctrl-C once: `soft` aborts, finish the batch and save; twice: stop now. SIGTERM counts as one Ctrl-C.
   * `what` completes the line "interrupted: finishing {what}". Dispose it when the work is done.
   */
  protected interruptible(what: string, stopNow?: () => void): Interruptible {
    return interruptible({
      what,
      write: (line) => void process.stderr.write(`${line}\n`),
      ...(stopNow ? { stopNow } : {}),
    })
  }

  /** oclif would take a missing argument from stdin, which belongs to the data of `copy-shard -` and to passwords. */
  protected override async init(): Promise<void> {
    await super.init()
    for (const arg of Object.values(this.ctor.args)) arg.ignoreStdin = true
  }

  /** One line, so that tools can read it. */
  protected override logJson(json: unknown): void {
    process.stdout.write(`${JSON.stringify(json)}\n`)
  }

  protected override async catch(error: Error): Promise<never> {
    const exit = exitOf(error)
    if (exit !== undefined) throw error
    const failure = describeFailure(error, this.id)
    process.stderr.write(renderFailure(failure, this.verbose))
    if (this.jsonEnabled()) this.logJson(failureJson(failure))
    return this.exit(failure.exitCode)
  }

  #has(flag: string): boolean {
    const end = this.argv.indexOf('--')
    return (end === -1 ? this.argv : this.argv.slice(0, end)).includes(flag)
  }
}

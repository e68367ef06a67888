/**
 * Entry of the command line: PgDog's habits turned into our commands, errors outside a command, exit codes.
 * Must stay light: `pgshard --help` has 300 ms.
 */
import { Config, flush, run } from '@oclif/core'
import { nearest } from '../config/suggest.js'
import { describeFailure, exitOf, failureJson, renderFailure } from './report-error.js'

/** PgDog's verb → our command. */
const verbs: Record<string, readonly string[]> = {
  run: ['serve'],
  hash: ['hash-password'],
  configcheck: ['config', 'check'],
}

/** PgDog's global flags may stand before its verb; all take a value. */
const leadingFlags = new Set(['-c', '--config', '-u', '--users', '-d', '--database-url'])

/** Number of words at the start that are PgDog's global flags and their values. */
function countLeading(argv: readonly string[]): number {
  let at = 0
  while (at < argv.length) {
    const word = argv[at] ?? ''
    if (leadingFlags.has(word)) at += 2
    else if (leadingFlags.has(word.split('=')[0] ?? '') && word.startsWith('--')) at += 1
    else break
  }
  return at
}

/**
 * What the user typed as oclif should read it: `--config X` alone is `serve --config X`, `run` is `serve`,
 * `-c X configcheck` is `config check -c X`. Aliases stand only where the command they mean exists.
 */
export function rewriteArgv(argv: readonly string[], commandIds: readonly string[]): string[] {
  const first = argv[0]
  if (first === undefined || first === '--help' || first === '--version') return [...argv]
  const leading = countLeading(argv)
  const flags = argv.slice(0, leading)
  const words = argv.slice(leading)
  const command = commandOf(words, commandIds)
  if (command) return [...command.name, ...flags, ...words.slice(command.length)]
  const bare = (words[0] ?? '-').startsWith('-') && !argv.includes('--help')
  return bare && commandIds.includes('serve') ? ['serve', ...argv] : [...argv]
}

/** The command that the words begin with, by its own name or PgDog's. */
function commandOf(
  words: readonly string[],
  commandIds: readonly string[],
): { name: readonly string[]; length: number } | undefined {
  for (const length of [2, 1]) {
    const name = words.slice(0, length)
    if (name.length === length && commandIds.includes(name.join(':'))) return { name, length }
  }
  const [verb = ''] = words
  const name = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
  return name && commandIds.includes(name.join(':')) ? { name, length: 1 } : undefined
}

/** What to say of words that are no command: the rest after one that is, or the nearest name. */
function unknownCommand(typed: string, names: readonly string[]) {
  const known = names.find((name) => typed.startsWith(`${name}:`) && !isTopic(name, names))
  if (known !== undefined) {
    const words = known.replaceAll(':', ' ')
    const rest = typed.slice(known.length + 1).replaceAll(':', ' ')
    return { message: `unexpected argument: ${rest}`, hint: `see "pgshard ${words} --help"` }
  }
  const guess = names.find((name) => name.startsWith(typed)) ?? nearest(typed, names)
  return {
    message: `there is no command "${typed.replaceAll(':', ' ')}"`,
    hint:
      guess === undefined
        ? 'see "pgshard --help"'
        : `did you mean "pgshard ${guess.replaceAll(':', ' ')}"?`,
  }
}

const isTopic = (name: string, names: readonly string[]): boolean =>
  names.some((other) => other.startsWith(`${name}:`))

function reportOutside(error: unknown, argv: readonly string[], names: readonly string[]): number {
  let failure = describeFailure(error)
  const typed = /^command (.+) not found$/.exec(failure.message)?.[1]
  if (typed !== undefined) {
    failure = { ...failure, ...unknownCommand(typed, names) }
  }
  process.stderr.write(renderFailure(failure, argv.includes('--verbose')))
  if (argv.includes('--json')) process.stdout.write(`${JSON.stringify(failureJson(failure))}\n`)
  return failure.exitCode
}

/** A reader of our output that went away (`| head`) is no error. */
function tolerateClosedPipe(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
  })
}

/** Runs the command line and ends the process with the exit code where it failed. */
export async function runCli(argv: readonly string[], dir: string): Promise<void> {
  tolerateClosedPipe()
  let commandIds: readonly string[] = []
  let names: readonly string[] = []
  const fail = (error: unknown): void => {
    process.exit(exitOf(error) ?? reportOutside(error, argv, names))
  }
  process.on('uncaughtException', fail)
  try {
    const config = await Config.load(dir)
    commandIds = config.commandIDs
    names = [...config.topics.map(({ name }) => name), ...commandIds]
    if (argv[0] === '--version') {
      process.stdout.write(`pgshard ${config.version}\n`)
      return
    }
    await run(rewriteArgv(argv, commandIds), config)
    await flush()
  } catch (error) {
    fail(error)
  }
}

/**
 * The real program, as users start it: `node bin/run.js …` of the built tree. What was started is
 * ended at the end of the test file, by process id, and by the guardian when the run dies.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, inject } from 'vitest'
import { noteProgram } from '../../src/cluster/guardian.js'
import { waitFor } from './wait-for.js'

export const projectRoot = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

export interface CliOptions {
  env?: Record<string, string | undefined>
  cwd?: string
  /** Text for standard input, which is then closed. */
  input?: string | Buffer
  /** The program is killed after so long, and the run fails. */
  timeoutMs?: number
  /** Another program of this repository than the one that users start. */
  program?: string
}

export interface CliResult {
  /** Exit code; null when a signal ended it. */
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface CliProgram {
  readonly pid: number
  readonly child: ChildProcess
  /** What it has written so far. */
  readonly stdout: string
  readonly stderr: string
  /** Resolves when it has ended. */
  readonly ended: Promise<CliResult>
  /** The first match in stdout or stderr; fails when the program ends or the deadline passes before. */
  waitForOutput(pattern: RegExp, deadlineMs?: number): Promise<RegExpMatchArray>
  signal(signal: NodeJS.Signals): void
  /** SIGTERM, then SIGKILL after 10 s. */
  stop(): Promise<CliResult>
}

const running = new Set<CliProgram>()

afterAll(async () => {
  await Promise.all([...running].map((program) => program.stop()))
})

/** Starts the program and returns at once. */
export function startCli(args: readonly string[], options: CliOptions = {}): CliProgram {
  if (!existsSync(join(projectRoot, 'dist', 'commands')))
    throw new Error('dist/ is missing: run "npm run build" first')
  const child = spawn(
    process.execPath,
    [join(projectRoot, options.program ?? 'bin/run.js'), ...args],
    {
      cwd: options.cwd ?? projectRoot,
      env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined, ...options.env },
      stdio: 'pipe',
    },
  )
  const forget = noteProgram(inject('runDirectory'), child.pid!)
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin.on('error', () => undefined) // it may end before it has read all
  if (options.input !== undefined) child.stdin.end(options.input)
  let result: CliResult | undefined
  const ended = new Promise<CliResult>((resolve) => {
    child.once('close', (code, signal) => {
      running.delete(program)
      forget()
      result = { code, signal, stdout, stderr }
      resolve(result)
    })
  })
  const program: CliProgram = {
    pid: child.pid!,
    child,
    get stdout() {
      return stdout
    },
    get stderr() {
      return stderr
    },
    ended,
    waitForOutput: (pattern, deadlineMs = 20_000) =>
      waitFor(
        () => {
          const found = stdout.match(pattern) ?? stderr.match(pattern)
          return found || (result ? 'ended' : undefined)
        },
        { deadlineMs, what: `${pattern} in the output of ${args.join(' ')}:\n${stdout}${stderr}` },
      ).then((found) => {
        if (found !== 'ended') return found
        throw new Error(`ended (${result?.code}) before ${pattern}:\n${stdout}${stderr}`)
      }),
    signal: (signal) => child.kill(signal),
    stop: async () => {
      if (!result) child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
      try {
        return await ended
      } finally {
        clearTimeout(timer)
      }
    },
  }
  running.add(program)
  return program
}

/** Runs the program to its end. */
export async function runCli(
  args: readonly string[],
  options: CliOptions = {},
): Promise<CliResult> {
  const program = startCli(args, { input: '', ...options })
  const { timeoutMs = 60_000 } = options
  let late = false
  const timer = setTimeout(() => {
    late = true
    program.signal('SIGKILL')
  }, timeoutMs)
  const result = await program.ended
  clearTimeout(timer)
  if (late)
    throw new Error(
      `not finished in ${timeoutMs} ms: ${args.join(' ')}\n${result.stdout}${result.stderr}`,
    )
  return result
}

/** Runs the program with --json and parses the one object (or the last line) that it prints. */
export async function runCliJson<T>(args: readonly string[], options: CliOptions = {}): Promise<T> {
  const { code, stdout, stderr } = await runCli([...args, '--json'], options)
  const last = stdout.trimEnd().split('\n').at(-1) ?? ''
  try {
    return JSON.parse(last) as T
  } catch (error) {
    throw new Error(`exit ${code}, no JSON:\n${stdout}${stderr}`, { cause: error })
  }
}

/** `pgshard serve` as a process of its own, as a user would start it. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'

const START_DEADLINE_MS = 20_000
const STOP_DEADLINE_MS = 8_000

export interface ProxyProcess {
  host: string
  port: number
  pid: number
  /** What it has written to stderr. */
  readonly log: string
  /** SIGHUP: it reads its configuration anew. */
  reload(): void
  /** SIGTERM, and SIGKILL when it does not drain. Resolves with its exit code; null: it was killed. */
  stop(): Promise<number | null>
}

export interface ProxyOptions {
  /** bin/run.js of this installation. */
  program: string
  configPath: string
  usersPath: string
  clock: Clock
  onStarted(pid: number): void
}

/** Starts the proxy on a free port; resolves when it listens. @throws DEMO_PROXY */
export async function startProxy(options: ProxyOptions): Promise<ProxyProcess> {
  const { program, configPath, usersPath, clock } = options
  const parameters = ['serve', '--config', configPath, '--users', usersPath, '--port', '0']
  const child = spawn(process.execPath, [program, ...parameters], {
    detached: true, // Ctrl-C is ours to hand on, in order
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  let hasEnded = false
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-20_000)
  })
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      hasEnded = true
      resolve(code)
    })
  })
  if (child.pid === undefined) throw engineError('DEMO_PROXY', {}, { detail: log })
  options.onStarted(child.pid)
  const deadline = clock.monotonicMs() + START_DEADLINE_MS
  let found: RegExpMatchArray | null = null
  while (!found && !hasEnded && clock.monotonicMs() < deadline) {
    await clock.sleep(10)
    found = log.match(/listening on (\S+):(\d+)/)
  }
  if (!found) {
    child.kill('SIGKILL')
    throw engineError('DEMO_PROXY', {}, { detail: log.trim() })
  }
  return {
    host: '127.0.0.1',
    port: Number(found[2]),
    pid: child.pid,
    get log() {
      return log
    },
    reload: () => void child.kill('SIGHUP'),
    stop: () => stopChild(child, ended, clock),
  }
}

async function stopChild(
  child: ChildProcess,
  ended: Promise<number | null>,
  clock: Clock,
): Promise<number | null> {
  child.kill('SIGTERM')
  const timer = clock.after(STOP_DEADLINE_MS, () => void child.kill('SIGKILL'))
  const code = await ended
  timer.cancel()
  return code
}

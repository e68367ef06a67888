/** A move as a process of its own: `pgshard reshard …`, not ended with us. Its last words are kept in a file. */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface TaskFiles {
  /** Configuration and users file, as the proxy has read them. */
  readonly config: string
  readonly users: string | undefined
  /** URL of the console that it pauses, without a password: that is in the files. */
  readonly consoleUrl: string
}

export interface TaskProcess {
  ended(): boolean
  code(): number | null
  /** What it said when it failed. */
  failure(): string
}

/** From the sources and from dist, which lies one folder deeper. */
const program = ['../../bin/run.js', '../../../bin/run.js']
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find(existsSync) as string

const consoleCommands = new Set(['run', 'resume'])

export function startTask(files: TaskFiles, words: readonly string[]): TaskProcess {
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-task-'))
  const path = join(directory, 'log')
  const log = openSync(path, 'a', 0o600)
  const args = [
    program,
    'reshard',
    ...words,
    '--config',
    files.config,
    ...(files.users === undefined ? [] : ['--users', files.users]),
    ...(consoleCommands.has(words[0] ?? '') ? ['--proxy', files.consoleUrl] : []),
  ]
  const child = spawn(process.execPath, args, { stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  child.unref()
  let code: number | null = null
  let isEnded = false
  child.on('exit', (exit) => {
    code = exit
    isEnded = true
  })
  child.on('error', () => {
    isEnded = true
  })
  return {
    ended: () => isEnded,
    code: () => code,
    failure: () => lastError(readFileSync(path, 'utf8')),
  }
}

function lastError(text: string): string {
  const lines = text.trim().split('\n')
  const at = lines.findIndex((line) => /^(pgshard: |error: |ERROR)/i.test(line.trim()))
  const told = at < 0 ? lines.slice(-5) : lines.slice(at)
  return told.join('; ').slice(0, 1500) || 'it ended without a word'
}

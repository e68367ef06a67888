/**
 * Programs that tests may want and npm does not bring: psql, pgbench, pgbouncer, python, chromium.
 * A missing one skips loudly, and with CI=true fails: there it must be installed.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const extraDirectories = ['/usr/lib/postgresql/15/bin', '/usr/sbin', '/usr/local/bin']

/** Path of a program, or undefined. */
export function findTool(name: string): string | undefined {
  const directories = [...extraDirectories, ...(process.env['PATH'] ?? '').split(delimiter)]
  return directories
    .map((directory) => join(directory, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return existsSync(path)
      } catch {
        return false
      }
    })
}

/**
 * For `describe.skipIf(isMissing('psql'))`: true when the program is not there, with a line that says so.
 * @throws when CI=true and it is missing
 */
export function isMissing(name: string): boolean {
  return report(name, findTool(name) === undefined)
}

/** The same for a file that a package brings, as a driver's jar. */
export function isFileMissing(path: string): boolean {
  return report(path, !existsSync(path))
}

/** The same for a module of Debian's python3. */
export function isPythonModuleMissing(module: string): boolean {
  const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3'
  const { status } = spawnSync(python, ['-c', `import ${module}`], { stdio: 'ignore' })
  return report(`python3 module ${module}`, status !== 0)
}

function report(what: string, missing: boolean): boolean {
  if (!missing) return false
  if (process.env['CI'] === 'true') throw new Error(`${what} is missing, and CI=true`)
  process.stderr.write(`SKIPPED: ${what} is not installed\n`)
  return true
}

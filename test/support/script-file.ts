/** Scripts for bench and pgbench, in files that go with the process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let directory: string | undefined
let count = 0

/** The path of a new file that holds `text`. */
export function scriptFile(text: string): string {
  if (directory === undefined) {
    directory = mkdtempSync(join(tmpdir(), 'pgshard-script-'))
    process.once('exit', () => rmSync(directory as string, { recursive: true, force: true }))
  }
  const path = join(directory, `${++count}.sql`)
  writeFileSync(path, text)
  return path
}

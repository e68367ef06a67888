/** The project's own sources, for rules over them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of the files under a folder whose names match, sorted. */
export function filesUnder(folder: string, pattern: RegExp): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

/** All TypeScript of some folders as one text, without the files whose path matches `except`. */
export function readSources(folders: readonly string[], except: RegExp): string {
  return folders
    .flatMap((folder) => filesUnder(folder, /\.ts$/))
    .filter((file) => !except.test(file))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n')
}

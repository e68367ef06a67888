/** The log of a watcher: one line a thing that happened, to a file and to standard output. */
import { appendFileSync } from 'node:fs'
import type { Clock } from '../base/clock.js'

export type HaLine = (text: string) => void

const two = (value: number) => String(value).padStart(2, '0')

/** `YYYY-MM-DD HH:MM:SS`, local time. */
export function stamp(ms: number): string {
  const at = new Date(ms)
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** Writes `YYYY-MM-DD HH:MM:SS : plpcluster : text`. @throws EACCES and the like on the first line, when the file cannot be written */
export function openHaLog(options: {
  readonly file: string | undefined
  readonly echo: (line: string) => void
  readonly clock: Clock
}): HaLine {
  return (text) => {
    const line = `${stamp(options.clock.nowMs())} : plpcluster : ${text}`
    if (options.file !== undefined) appendFileSync(options.file, `${line}\n`)
    options.echo(line)
  }
}

/** `\shell` and `\setshell`: a command of a script for the system's shell. Source followed: runShellCommand in pgbench.c. */
import { spawn } from 'node:child_process'
import type { Variables } from '../script/variables.js'

/** What pgbench's buffer holds, less the zero at its end. */
const LONGEST = 255

/** Words with single spaces between; `:name` is a variable, `::name` the text ":name". What is wrong is a message. */
export function shellText(
  words: readonly string[],
  variables: Variables,
): { readonly command: string } | { readonly problem: string } {
  const parts: string[] = []
  for (const word of words) {
    if (!word.startsWith(':')) parts.push(word)
    else if (word.startsWith('::')) parts.push(word.slice(1))
    else {
      const text = variables.text(word.slice(1))
      if (text === undefined) return { problem: `${words[0]}: undefined variable "${word}"` }
      parts.push(text)
    }
  }
  const command = parts.join(' ')
  if (Buffer.byteLength(command) > LONGEST)
    return { problem: `${words[0]}: shell command is too long` }
  return { command }
}

/** Runs it; gives the first line that it wrote, if any, when `wantsOutput`, else its output is ours. */
export function runShell(
  command: string,
  wantsOutput: boolean,
): Promise<{ readonly code: number | null; readonly line: string | undefined }> {
  return new Promise((resolve) => {
    const child = spawn('/bin/sh', ['-c', command], {
      stdio: ['inherit', wantsOutput ? 'pipe' : 'inherit', 'inherit'],
    })
    let text = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      if (!text.includes('\n')) text += chunk.toString()
    })
    child.once('error', () => resolve({ code: null, line: undefined }))
    child.once('close', (code) =>
      resolve({ code, line: text === '' ? undefined : text.split('\n')[0] }),
    )
  })
}

/** The integer that a command's line is, as strtol reads it; undefined when it is none. */
export function shellInteger(line: string): bigint | undefined {
  const found = /^\s*([+-]?\d+)\s*$/.exec(line)
  return found ? BigInt.asIntN(64, BigInt(found[1] as string)) : undefined
}

/** Questions to the person at the terminal, on stderr; answers from stdin when it is no terminal. A password is never echoed. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { engineError } from '../errors/engine-error.js'

async function readAll(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

/** One line from the terminal; `echo` off hides what is typed. */
function ask(question: string, echo: boolean): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const output = echo ? process.stderr : silent
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  if (!echo) process.stderr.write(question)
  return new Promise((resolve, reject) => {
    let answered = false
    lines.on('close', () => {
      if (!echo) process.stderr.write('\n')
      if (!answered) reject(engineError('INTERRUPTED', { what: 'the question' }))
    })
    lines.question(echo ? question : '', (answer) => {
      answered = true
      lines.close()
      resolve(answer)
    })
  })
}

/** A password: typed unseen on a terminal, else the first line of stdin. */
export async function readPassword(question: string): Promise<string> {
  if (process.stdin.isTTY) return ask(question, false)
  return ((await readAll()).split('\n')[0] ?? '').replace(/\r$/, '')
}

/** True for "y" or "yes". Without a terminal there is nobody to ask: false. */
export async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  return /^y(es)?$/i.test((await ask(`${question} [y/N] `, true)).trim())
}

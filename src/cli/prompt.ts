/** Asks the person at the terminal for a password, on stderr and unseen; reads it from stdin when that is no terminal. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { engineError } from '../errors/engine-error.js'

async function readAll(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

/** One line from the terminal; what is typed is not shown. */
function askUnseen(question: string): Promise<string> {
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  process.stderr.write(question)
  return new Promise((resolve, reject) => {
    let answered = false
    lines.on('close', () => {
      process.stderr.write('\n')
      if (!answered) reject(engineError('INTERRUPTED', { what: 'the question' }))
    })
    lines.question('', (answer) => {
      answered = true
      lines.close()
      resolve(answer)
    })
  })
}

/** A password: typed unseen on a terminal, else the first line of stdin. */
export async function readPassword(question: string): Promise<string> {
  if (process.stdin.isTTY) return askUnseen(question)
  return ((await readAll()).split('\n')[0] ?? '').replace(/\r$/, '')
}

/**
 * `serve` that ends by SIGKILL at one step of its first two-phase commit: node dying-serve.mjs STEP CONFIG USERS PORT.
 * Without a step ("-") it lives. Runs the built program; the step is told by a seam that the command itself has not.
 */
import { writeSync } from 'node:fs'
import { serve } from '../../dist/src/proxy/serve.js'

const [step, config, users, port] = process.argv.slice(2)

const code = await serve({
  load: { configPath: config, usersPath: users, env: {} },
  version: 'test',
  port: Number(port),
  announce: (line) => void process.stderr.write(`${line}\n`),
  onTwoPhaseStep: (now) => {
    if (now !== step) return
    writeSync(2, `died at ${now}\n`)
    process.kill(process.pid, 'SIGKILL')
  },
})
process.exit(code)

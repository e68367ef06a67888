/** The write pause of whole moves 2 → 4 through a serve with writers on it. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { keepFigure } from '../results.mjs'
import {
  clock,
  directory,
  drop,
  fill,
  flags,
  makeDatabases,
  median,
  place,
  program,
  run,
} from './stage.mjs'

const entries = (name, names) =>
  names
    .map(
      (database, shard) =>
        `[[databases]]\nname = "${name}"\nhost = "${place.host}"\nport = ${place.port}\ndatabase_name = "${database}"\nshard = ${shard}\n`,
    )
    .join('') +
  `[[sharded_tables]]\ndatabase = "${name}"\nname = "acct"\ncolumn = "tenant"\ndata_type = "bigint"\n`

function writeFiles(number, from, to) {
  const file = join(directory, `pgdog-${number}.toml`)
  const users = join(directory, `users-${number}.toml`)
  writeFileSync(
    file,
    `[general]\nhost = "127.0.0.1"\nport = 0\n[admin]\nuser = "admin"\npassword = "adm"\n${entries('shop', from)}${entries('shop_new', to)}`,
  )
  writeFileSync(
    users,
    `[[users]]\nname = "${place.user}"\npassword = "pw"\ndatabases = ["shop", "shop_new"]\n`,
  )
  return ['--config', file, '--users', users]
}

async function startServe(files) {
  const serve = spawn(process.execPath, [program, 'serve', ...files], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const port = await new Promise((resolve) =>
    serve.stderr.on('data', (text) => {
      const found = /listening on 127\.0\.0\.1:(\d+)/.exec(String(text))
      if (found) resolve(Number(found[1]))
    }),
  )
  return { serve, port }
}

/** One statement every 10 ms each; what a switch asks to run again (40001) is run again. */
function startWriters(port) {
  const state = { isOver: false, failed: 0, longestMs: 0 }
  const write = async (writer) => {
    const client = new pg.Client({
      host: '127.0.0.1',
      port,
      user: place.user,
      password: 'pw',
      database: 'shop',
    })
    client.on('error', () => undefined)
    await client.connect()
    for (let i = 0; !state.isOver; i++) {
      const startedMs = performance.now()
      try {
        await client.query('INSERT INTO acct (tenant, id) VALUES ($1, $2)', [
          writer,
          10_000_000 + i,
        ])
      } catch (error) {
        if (error.code !== '40001') state.failed++
        else i--
      }
      state.longestMs = Math.max(state.longestMs, performance.now() - startedMs)
      await clock.sleep(10)
    }
    await client.end()
  }
  const loops = Array.from({ length: Number(flags.writers) }, (_, writer) => write(writer))
  return {
    stop: async () => {
      state.isOver = true
      await Promise.all(loops)
      return state
    },
  }
}

const reshard = (files, port) =>
  new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        program,
        'reshard',
        'run',
        ...files,
        '--from',
        'shop',
        '--to',
        'shop_new',
        '--yes',
        '--json',
        '--proxy',
        `postgres://admin@127.0.0.1:${port}/admin`,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    let [out, err] = ['', '']
    child.stdout.on('data', (text) => {
      out += text
    })
    child.stderr.on('data', (text) => {
      err += text
    })
    child.on('exit', (code) =>
      code === 0 ? resolve(JSON.parse(out)) : reject(new Error((err + out).slice(-2000))),
    )
  })

export async function pause() {
  const [pauses, longest] = [[], []]
  const steps = new Map()
  let failed = 0
  for (let number = 0; number < Number(flags.cutovers); number++) {
    const [from, to] = [await makeDatabases(2), await makeDatabases(4)]
    await fill(from, 5000)
    const files = writeFiles(number, from, to)
    const { serve, port } = await startServe(files)
    const writers = startWriters(port)
    const report = await reshard(files, port)
    const { failed: ofThese, longestMs } = await writers.stop()
    failed += ofThese
    longest.push(Math.round(longestMs))
    serve.kill('SIGTERM')
    await new Promise((resolve) => serve.on('exit', resolve))
    pauses.push(report.cutover.writePauseMs)
    for (const { step, ms } of report.cutover.steps)
      steps.set(step, [...(steps.get(step) ?? []), ms])
    run(['reshard', 'cleanup', ...files, '--from', 'shop', '--to', 'shop_new'])
    await drop([...from, ...to])
  }
  console.log(
    `write pause of ${pauses.length} cutovers under ${flags.writers} writers: p50 ${median(pauses)} ms (target 100), max ${Math.max(...pauses)} ms (target 1000), ${failed} errors; all: ${pauses.join(', ')}`,
  )
  console.log(
    `  longest statement of a client in each: p50 ${median(longest)} ms, max ${Math.max(...longest)} ms; all: ${longest.join(', ')}`,
  )
  const [p50, most] = [median(pauses), Math.max(...pauses)]
  keepFigure({
    what: `write pause of ${pauses.length} cutovers under ${flags.writers} writers`,
    ours: `p50 ${p50} ms, max ${most} ms, ${failed} errors; longest statement of a client: p50 ${median(longest)} ms`,
    target: 'p50 ≤ 100 ms, max ≤ 1 s, 0 errors',
    holds: p50 <= 100 && most <= 1000 && failed === 0,
  })
  for (const [step, times] of steps) console.log(`  ${step}: ${median(times)} ms`)
}

/** The pages for newcomers, run as they stand: every command of every `sh` block, in order, in an empty folder. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../support/free-port.js'
import { bySize } from '../../support/test-size.js'
import { isMissing } from '../../support/tools.js'
import { type Ports, shellBlocks, walkScript } from './extract-walk.js'

const written = [5440, 5450, 6432, 6433, 8088]

/** Servers follow each other from the first port on: 5440 to 5449 are one row of free ones. */
async function freePorts(): Promise<Ports> {
  const ports = new Map<string, number>()
  for (const port of written) {
    const free = await freePort()
    const row = port === 5440 || port === 5450 ? [0, 1, 2] : [0]
    for (const step of row) ports.set(String(port + step), free + step)
  }
  return ports
}

/** All output, and the exit code. */
async function run(script: string): Promise<{ code: number | null; output: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'walk-'))
  writeFileSync(join(folder, 'walk.sh'), script)
  const child = spawn('bash', ['walk.sh'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  if (code === 0) rmSync(folder, { recursive: true, force: true })
  return { code, output }
}

/** In the quick size only the page that everybody reads. */
const pages = (all: [string, string[]][]): [string, string[]][] => bySize(all.slice(0, 1), all)

describe.skipIf(isMissing('psql'))('what the pages tell to type', () => {
  test.each(
    pages([
      [
        'README.md',
        ['read 2 = written 2', 'threshold p99<500ms: ok', '200\n', 'shard 1 (write, primary)'],
      ],
      ['docs/guides/from-pgbouncer.md', ['database "shop": 1 shard']],
      ['docs/guides/from-pgdog.md', ['relay: shard 0']],
      [
        'docs/guides/from-citus.md',
        ['public.orders by tenant_id', 'on every shard: public.currencies'],
      ],
      ['docs/guides/bench-in-ci.md', ['threshold node(']],
      ['docs/guides/operate-a-fleet.md', ['(1 row)']],
      ['docs/guides/shard-a-database.md', ['sharded by customer_id']],
      ['docs/guides/reshard.md', ['read 5000 = written 5000']],
    ]),
  )('%s works as it stands', async (page, says) => {
    // The first two of the README install and run the demo, which have tests of their own.
    const blocks = shellBlocks(page).slice(page === 'README.md' ? 2 : 0)
    expect(blocks.length).toBeGreaterThan(0)
    const { code, output } = await run(walkScript(blocks, await freePorts()))
    expect([code, output.slice(-3000)]).toEqual([0, expect.anything()])
    for (const text of says) expect(output).toContain(text)
  })
})

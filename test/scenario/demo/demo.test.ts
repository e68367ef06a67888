import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { runCli, startCli } from '../../support/run-cli.js'
import { bySize } from '../../support/test-size.js'
import { waitFor } from '../../support/wait-for.js'

/** Processes whose command line names this directory; Linux only, as is the demo's clean-up check in CI. */
const processesOf = (directory: string): number[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(directory)
      } catch {
        return false
      }
    })

const directoryIn = (output: string): string => output.match(/\S*pgshard-demo-\w+/)![0]

const expectGone = async (directory: string) => {
  await waitFor(() => processesOf(directory).length === 0 && !existsSync(directory), {
    what: `nothing of ${directory} left`,
  })
}

test('plays to the end, every check holds, nothing is left', async () => {
  const { code, stdout, stderr } = await runCli(['demo', '--customers', bySize('3000', '60000')], {
    timeoutMs: 180_000,
  })
  expect(`${stderr}${code}`).toBe('0')
  expect(stdout).toMatch(/Done in .*: \d+ checks held, everything is stopped and removed/)
  expect(stdout).not.toContain('\u001b')
  await expectGone(directoryIn(stdout))
})

test.each([
  ['SIGINT', 'Make the data', 130],
  ['SIGINT', 'Measure it', 130],
  ['SIGKILL', 'Start the proxy', null],
] as const)('%s at "%s" leaves nothing', async (signal, step, code) => {
  const demo = startCli(['demo', '--customers', '3000'])
  await demo.waitForOutput(new RegExp(step), 60_000)
  const directory = directoryIn(demo.stdout)
  expect(existsSync(directory)).toBe(true)
  demo.signal(signal)
  const result = await demo.ended
  expect(result.code).toBe(code)
  await expectGone(directory)
})

/** Runs a benchmark inside the test: flags as on the command line, what it would have written to stderr collected. */
import { type RunFlags, resultLines, runOptions } from '../../src/bench/bench-command.js'
import { type BenchResult, runBench } from '../../src/bench/run-bench.js'

const defaults: RunFlags = {
  'skip-some-updates': false,
  'select-only': false,
  client: 1,
  connect: false,
  jobs: 1,
  protocol: 'simple',
  'report-per-command': false,
  'no-vacuum': true,
  'vacuum-all': false,
  'max-tries': 1,
  'verbose-errors': false,
  'failures-detailed': false,
  'progress-timestamp': false,
  log: false,
  debug: false,
  seed: '1',
}

export interface BenchRun extends BenchResult {
  readonly stderr: string
}

export async function benchRun(
  target: string,
  flags: Partial<RunFlags> = {},
  signal?: AbortSignal,
): Promise<BenchRun> {
  return await benchLines(target, flags, signal)
}

/** The same, with the lines of its report. */
export async function benchLines(
  target: string,
  flags: Partial<RunFlags> = {},
  signal?: AbortSignal,
): Promise<BenchRun & { readonly lines: readonly string[] }> {
  const said: string[] = []
  const say = (line: string) => void said.push(line)
  const options = runOptions(target, { ...defaults, ...flags }, say)
  const result = await runBench(options, { say, ...(signal === undefined ? {} : { signal }) })
  return { ...result, stderr: said.join('\n'), lines: resultLines(result, options, 'test') }
}

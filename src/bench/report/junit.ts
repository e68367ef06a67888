/** The result of a run in the JUnit XML that CI systems read: the run itself and each threshold is a test case. */
import type { BenchResult } from '../run-bench.js'

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\n': '&#10;',
}

// Control characters have no form in XML 1.0.
const escaped = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML cannot hold
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '?')
    .replace(/[&<>"\n]/g, (found) => entities[found] ?? found)

const attributes = (values: Readonly<Record<string, string | number>>): string =>
  Object.entries(values)
    .map(([name, value]) => ` ${name}="${escaped(String(value))}"`)
    .join('')

interface Case {
  readonly name: string
  readonly seconds: number
  /** Why it failed; absent: it passed. */
  readonly failure?: string
}

function casesOf({ report, thresholds }: BenchResult): Case[] {
  const seconds = report.elapsed_ms / 1000
  const aborted = report.aborted_clients
  return [
    {
      name: `run: ${report.transaction_type}`,
      seconds,
      ...(aborted === 0 ? {} : { failure: `${aborted} of ${report.clients} clients were aborted` }),
    },
    ...thresholds.map(({ threshold, value, unit, ok }) => ({
      name: `threshold ${threshold}`,
      seconds: 0,
      ...(ok
        ? {}
        : { failure: value === null ? 'not measured' : `${value.toFixed(3)} ${unit}`.trimEnd() }),
    })),
  ]
}

const caseXml = ({ name, seconds, failure }: Case): string => {
  const head = `    <testcase${attributes({ classname: 'pgshard.bench', name, time: seconds.toFixed(3) })}`
  if (failure === undefined) return `${head}/>`
  return `${head}>\n      <failure${attributes({ message: failure })}>${escaped(`${name}: ${failure}`)}</failure>\n    </testcase>`
}

/** The file; figures of the run and of each node are properties. */
export function junitXml(result: BenchResult): string {
  const { report } = result
  const cases = casesOf(result)
  const figures: Record<string, number | string> = {
    tps: report.tps.toFixed(3),
    p50_ms: report.latency_ms.p50,
    p95_ms: report.latency_ms.p95,
    p99_ms: report.latency_ms.p99,
    failed_pct: report.failed_pct,
    seed: report.seed,
    ...Object.fromEntries(
      report.nodes.flatMap((node) => [
        [`node(${node.node}).transactions`, node.transactions],
        [`node(${node.node}).p99_ms`, node.p99],
      ]),
    ),
  }
  const suite = {
    name: 'pgshard bench',
    tests: cases.length,
    failures: cases.filter(({ failure }) => failure !== undefined).length,
    errors: 0,
    time: (report.elapsed_ms / 1000).toFixed(3),
  }
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes(suite)}>`,
    `  <testsuite${attributes(suite)}>`,
    '    <properties>',
    ...Object.entries(figures).map(
      ([name, value]) => `      <property${attributes({ name, value })}/>`,
    ),
    '    </properties>',
    ...cases.map(caseXml),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

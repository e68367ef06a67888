/** The commands of a page, as one shell script: its `sh` blocks in order, on free ports, with the program of this tree. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '../../support/run-cli.js'

/** Port in the page → port in the script. */
export type Ports = ReadonlyMap<string, number>

export function shellBlocks(page: string): string[] {
  const text = readFileSync(join(projectRoot, page), 'utf8')
  return [...text.matchAll(/^( *)```sh\n([\s\S]*?)^ *```$/gm)].map(([, indent = '', body = '']) =>
    body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )
}

export function walkScript(blocks: readonly string[], ports: Ports): string {
  let script = blocks
    .join('\n')
    .replaceAll(/\bnpx pgshard\b/g, `node ${join(projectRoot, 'bin/run.js')}`)
  // Longest first would matter only for ports that begin alike; all have four digits.
  script = script.replaceAll(/\b(?:5440|5441|5450|5451|5452|6432|6433|8088)\b/g, (port) =>
    String(ports.get(port) ?? port),
  )
  return `set -euo pipefail\n${script}\n`
}

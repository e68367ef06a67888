#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const entry = new URL('../dist/src/cli/run-cli.js', import.meta.url)
if (!existsSync(entry)) {
  process.stderr.write('pgshard: not built yet\nHINT: run "npm run build"\n')
  process.exit(1)
}
const { runCli } = await import(entry.href)
await runCli(process.argv.slice(2), fileURLToPath(new URL('..', import.meta.url)))

/** The report of the latest run between two databases, written to a file. */
import { writeFile } from 'node:fs/promises'
import { engineError } from '../../errors/engine-error.js'
import { readSamples } from '../guards/sample-store.js'
import { findRun, runStatus } from '../run-status.js'
import type { ReshardSide } from '../side.js'
import { reportPage } from './report-page.js'

/** @throws RESHARD_NO_RUN, RESHARD_REPORT_FILE */
export async function writeReport(path: string, from: ReshardSide, to: ReshardSide): Promise<void> {
  const status = await runStatus(from, to)
  const found = await findRun(from, to)
  const samples = found ? await readSamples(found.target, status.run) : []
  const page = reportPage({ from: from.name, to: to.name, status, samples })
  await writeFile(path, page).catch((cause: Error) => {
    throw engineError('RESHARD_REPORT_FILE', { path, reason: cause.message }, { cause })
  })
}

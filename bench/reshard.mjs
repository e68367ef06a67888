/**
 * Resharding against the targets of the design (§12): copy of 2 shards into 4 against pg_dump | psql of the same tables at the same
 * parallelism; applying against a native subscription; verify against COPY OUT of both sides; the write pause of cutovers.
 *   node bench/reshard.mjs [--rows 400000] [--changes 100000] [--rounds 3] [--cutovers 10] [--writers 50] [--only copy,verify,apply,pause]
 *                          [--bin-dir /usr/lib/postgresql/15/bin] [--results FILE]
 * It needs a build, psql and pg_dump; it starts one server of its own in a temporary folder. Rounds are interleaved, medians taken.
 */
import { rmSync } from 'node:fs'
import { destroyCluster } from '../dist/src/cluster/cluster.js'
import { apply } from './reshard/apply.mjs'
import { copyAndVerify } from './reshard/copy-and-verify.mjs'
import { pause } from './reshard/pause.mjs'
import { clusterDirectory, directory, only } from './reshard/stage.mjs'

try {
  if (only.has('copy') || only.has('verify')) await copyAndVerify()
  if (only.has('apply')) await apply()
  if (only.has('pause')) await pause()
} finally {
  await destroyCluster(clusterDirectory)
  rmSync(directory, { recursive: true, force: true })
}

/** Once for a run of a suite: a directory in which its servers live, and their end when the run ends. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { sharedTemporaryDirectory } from '../../src/cluster/cache-directory.js'
import { destroyCluster, hasCluster } from '../../src/cluster/cluster.js'
import { startGuardian } from '../../src/cluster/guardian.js'
import { serverUser } from '../../src/cluster/run-as.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** Directory of the servers of this run. */
    runDirectory: string
  }
}

export function setup(project: TestProject): () => Promise<void> {
  const run = mkdtempSync(join(sharedTemporaryDirectory(serverUser()), 'pgshard-test-'))
  chmodSync(run, 0o755) // the servers may run as another user
  const guardian = startGuardian(run)
  project.provide('runDirectory', run)
  return async () => {
    const directories = existsSync(run) ? readdirSync(run).map((name) => join(run, name)) : []
    // what cannot be destroyed in order, the guardian ends
    await Promise.allSettled(
      directories.filter(hasCluster).map((directory) => destroyCluster(directory)),
    )
    await guardian.release()
    rmSync(run, { recursive: true, force: true })
  }
}

import { defineConfig } from 'vitest/config'

/** One project a suite; `scripts/run-tests.mjs` runs them with their budgets. */
const suite = (
  name: string,
  options: { seconds?: number; files?: boolean; servers?: boolean } = {},
) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: (options.seconds ?? 5) * 1000,
    hookTimeout: 120_000,
    fileParallelism: options.files ?? true,
    setupFiles: ['test/support/seeds.ts'],
    // Real processes on a loaded machine: one more attempt, which run-tests.mjs reports by name and bounds.
    ...(options.servers ? { globalSetup: ['test/support/global-setup.ts'], retry: 1 } : {}),
  },
})

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      suite('unit'),
      suite('property', { seconds: 60 }),
      suite('rules', { seconds: 60 }),
      suite('db', { seconds: 60, servers: true }),
      suite('oracle', { seconds: 300, servers: true }),
      suite('cli', { seconds: 60, servers: true }),
      suite('scenario', { seconds: 300, files: false, servers: true }),
    ],
  },
})

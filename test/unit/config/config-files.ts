/** Configurations for tests: written to a directory of their own, loaded, problems with places relative to it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { loadConfig } from '../../../src/config/load-config.js'
import type { LoadedConfig } from '../../../src/config/loaded-config.js'
import { isEngineError } from '../../../src/errors/engine-error.js'

export const dir = mkdtempSync(join(tmpdir(), 'pgshard-config-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

export const shop = `
[[databases]]
name = "shop"
host = "10.0.0.1"
`
export const twoShards = `${shop}shard = 0

[[databases]]
name = "shop"
host = "10.0.0.2"
shard = 1
`
export const app = `
[[users]]
name = "app"
database = "shop"
password = "secret"
`

export function load(
  config: string,
  users: string = app,
  env: Record<string, string> = {},
): LoadedConfig {
  const configPath = join(dir, 'pgdog.toml')
  const usersPath = join(dir, 'users.toml')
  writeFileSync(configPath, config)
  writeFileSync(usersPath, users)
  return loadConfig({ configPath, usersPath, env })
}

/** The problems of a configuration, without the directory. */
export function problems(
  config: string,
  users: string = app,
  env: Record<string, string> = {},
): string[] {
  try {
    load(config, users, env)
  } catch (error) {
    if (!isEngineError(error) || error.code !== 'CONFIG_INVALID') throw error
    return (error.detail ?? '').replaceAll(`${dir}/`, '').split('\n')
  }
  return []
}

/** Number of the line that ends in the comment `#!`. */
export function markedLine(text: string): number {
  return text.split('\n').findIndex((line) => line.endsWith('#!')) + 1
}

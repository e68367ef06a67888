/** Flags that several commands share, each defined once. `-h` is the host everywhere; help is `--help`. */
import { Flags } from '@oclif/core'
import { keyTypes } from '../datum/key-type.js'

/** Where the configuration is: PgDog's names and letters. */
export const configFlags = {
  config: Flags.string({
    char: 'c',
    description: 'pgdog.toml; default: the one in the working directory',
    helpValue: 'FILE',
  }),
  users: Flags.string({
    char: 'u',
    description: 'users.toml; default: the one beside the configuration',
    helpValue: 'FILE',
  }),
  'database-url': Flags.string({
    char: 'd',
    description: 'a database without a file: postgres://user:password@host/name?shard=0',
    helpValue: 'URL',
    multiple: true,
    // One value a flag, so that arguments may follow.
    multipleNonGreedy: true,
  }),
} as const

/** What the flags above hold, as `loadConfig` wants it. */
export function configOptions(flags: {
  config?: string | undefined
  users?: string | undefined
  'database-url'?: string[] | undefined
}): {
  configPath?: string
  usersPath?: string
  databaseUrls: readonly string[]
  env: NodeJS.ProcessEnv
} {
  return {
    ...(flags.config === undefined ? {} : { configPath: flags.config }),
    ...(flags.users === undefined ? {} : { usersPath: flags.users }),
    databaseUrls: flags['database-url'] ?? [],
    env: process.env,
  }
}

export const keyTypeFlag = Flags.string({
  dependsOn: ['sharding-key'],
  options: keyTypes,
  description: "type of the sharding key (the column's own)",
})

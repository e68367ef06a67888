/** `pgshard bench …` is `bench run`; with -i, as in pgbench, it is `bench init`. */
import { Flags } from '@oclif/core'
import { fullNames } from '../../src/cli/abbreviations.js'
import BenchInit from './init.js'
import BenchRun from './run.js'

/** The words of `bench init` when -i is among them, else undefined. */
function wordsOfInit(argv: readonly string[]): string[] | undefined {
  const initialize = Flags.boolean({ char: 'i' })
  const words = fullNames(argv, {
    ...BenchInit.baseFlags,
    ...BenchRun.flags,
    ...BenchInit.flags,
    initialize,
  })
  const end = words.indexOf('--')
  const at = words.indexOf('--initialize')
  if (at < 0 || (end >= 0 && at > end)) return undefined
  return words.filter((word, i) => word !== '--initialize' || (end >= 0 && i > end))
}

export default class Bench extends BenchRun {
  static override examples = [
    ...BenchRun.examples,
    "<%= config.bin %> bench -i -s 10 'host=a,b,c dbname=bench'",
  ]

  override async run(): Promise<object> {
    const words = wordsOfInit(this.argv)
    if (words === undefined) return await super.run()
    return (await BenchInit.run(words, this.config)) as object
  }
}

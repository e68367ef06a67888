/** `pgshard bench …` is `bench run`; with -i, as in pgbench, it is `bench init`. */
import { fullNames } from '../../src/cli/abbreviations.js'
import BenchInit from './init.js'
import BenchRun from './run.js'

/** "-i", "-iq", "--initialize" before "--". */
function wantsInit(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  const words = end < 0 ? argv : argv.slice(0, end)
  return words.some((word) => word === '--initialize' || /^-i[qn]*$/.test(word))
}

const withoutInit = (argv: readonly string[]): string[] =>
  argv.flatMap((word) => {
    if (word === '--initialize' || word === '-i') return []
    return /^-i[qn]+$/.test(word) ? [`-${word.slice(2)}`] : [word]
  })

export default class Bench extends BenchRun {
  static override examples = [
    ...BenchRun.examples,
    "<%= config.bin %> bench -i -s 10 'host=a,b,c dbname=bench'",
  ]

  override async run(): Promise<object> {
    this.argv = fullNames(this.argv, Bench)
    if (!wantsInit(this.argv)) return await super.run()
    return (await BenchInit.run(withoutInit(this.argv), this.config)) as object
  }
}

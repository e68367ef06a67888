/** Command lines of pgbench 15 through both programs: each is taken by both or refused by both, with the same exit code, and the same files are left behind. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../../support/run-cli.js'
import { bySize } from '../../support/test-size.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { runProgram } from '../drivers/driver-rig.js'

const scripts = mkdtempSync(join(tmpdir(), 'bench-option-lines-'))
afterAll(() => rmSync(scripts, { recursive: true, force: true }))
const file = join(scripts, 'quick.sql')

/** Behind `-n -t 1 -f quick.sql`. `␣` is a blank, "" nothing. */
const numbers = [
  ...['-R 0', '-R -1', '-R 1e3', '-R ␣1000', '-R 0x3e8', '-R ""', '-R x', '--rate=900'],
  ...['-L 0.5', '-L abc', '-L 0', '-l --sampling-rate 1', '-l --sampling-rate 0'],
  ...['-l --sampling-rate 1.1', '--sampling-rate 0.5', '--aggregate-interval 1'],
  ...['-l --aggregate-interval 1', '-l --aggregate-interval 0', '-l --aggregate-interval x'],
  ...['-c 0', '-c -1', '-c 1x', '-c ␣1', '-c 1␣', '-c +1', '-c 01', '-c 0x1', '-c 1.0', '-c ""'],
  ...[
    '-c 99999999999',
    '-j 0',
    '-j 5 -c 2',
    '-s 2',
    '-s 0',
    '-s x',
    '-P 0',
    '-P 1',
    '-p x',
    '-p 1',
  ],
  ...['--max-tries -1', '--max-tries x', '--max-tries ""', '--max-tries 0', '--max-tries 0 -L 10'],
]
const words = [
  ...['-M Simple', '-M prep', '-M ""', '-M prepared', '--progress-timestamp', '--log-prefix a'],
  ...['-l --log-prefix /nowhere/a', '-l --log-prefix ""', '-l --log-prefix mine'],
  ...['--random-seed 0x5', '--random-seed ␣5', '--random-seed 5␣', '--random-seed -5'],
  ...['--random-seed +5', '--random-seed 5x', '--random-seed 18446744073709551615'],
  ...['--random-seed 99999999999999999999999', '--random-seed ""', '--random-seed time'],
  ...[
    '--random-seed rand',
    '--random-seed Rand',
    '-f FILE@2',
    '-f FILE@-1',
    '-f FILE@x',
    '-f FILE@',
  ],
  ...[
    '-f FILE@1x',
    '-f FILE@␣1',
    '-f FILE@99999999999',
    '-f FILE@2147483648',
    '-f /nowhere',
    '-f ""',
  ],
  ...['-b s', '-b nope', '-b list', '--show-script se', '--show-script s', '--show-script nope'],
  ...['-D a=1', '-D a', '-D a=', '-D =a', '-D a␣b=1', '-D 1a=1', '-D é=1', '-D a=b=c', '-D ""'],
  ...['-D a=1 -D a=2', '-D random_seed=5', '-D default_seed=x', '-D scale=5 -s 2', '-d nowhere'],
]
const again = [
  ...['-c 1 -c 2', '-t 2', '-T 1', '-M extended -M simple', '-n -n', '-r -r', '-R 5 -R 900'],
  ...['-F 90', '-q', '--foreign-keys', '--unlogged-tables', '-I dt', '--tablespace pg_default'],
  ...['--index-tablespace pg_default', '--partitions 2', '--partition-method hash'],
  ...['extra', 'DB extra', '-- DB', 'DB', 'nowhere', '--nope', '-Z', '-c', '--client', '--client='],
  ...['--connect=yes', '-Crl', '-rc2', '-rc=2', '-c=2', '--debug', '--verbose-errors', '-v'],
]
const abbreviated = [
  ...[
    '--b s',
    '--bu s',
    '--cl 2',
    '--c 2',
    '--co',
    '--con',
    '--de 1',
    '--def a=1',
    '--deb',
    '--fa',
  ],
  ...['--f x', '--fil FILE', '--fi FILE', '--j 1', '--l', '--la 100', '--log', '--log-', '--m 2'],
  ...['--n', '--no', '--p 5', '--pro extended', '--prog 5', '--progress 5', '--prot extended'],
  ...[
    '--ra 5',
    '--rat 900',
    '--ran 5',
    '--rep',
    '--r',
    '--sa 1',
    '--sc 2',
    '--s 2',
    '--se',
    '--sh s',
  ],
  ...['--sk', '--t 1', '--ti 1', '--tr 2', '--v', '--va', '--ve', '--verb', '--ver'],
]
/** Behind `-i -q`, on nothing but empty tables. */
const init = [
  ...['-I x', '-I ""', '-I d␣t', '-I ␣', '-I dt -c 2', '-I dt -t 2', '-I dt -T 2', '-I dt -j 2'],
  ...['-I dt -C', '-I dt -r', '-I dt -S', '-I dt -N', '-I dt -v', '-I dt -l', '-I dt -R 5'],
  ...['-I dt -L 5', '-I dt -P 5', '-I dt -M simple', '-I dt -D a=1', '-I dt -f FILE', '-I dt -b s'],
  ...['-I dt --random-seed 5', '-I dt --max-tries 5', '-I dt --failures-detailed'],
  ...['-I dt --verbose-errors', '-I dt --sampling-rate 0.5', '-I dt --progress-timestamp'],
  ...['-I dt -F 9', '-I dt -F 101', '-I dt -F 50', '-I dt -s 0', '-I dt --partitions -1'],
  ...['-I dt --partitions 2', '-I dt --partitions 2 --partition-method HASH'],
  ...['-I dt --partition-method hash', '-I dt --partitions 2 --partition-method list'],
  ...[
    '-I dt --tablespace nope',
    '-I dtp --index-tablespace nope',
    '-I dtp --index-tablespace pg_default',
  ],
  ...['-n -I dtv', '-nI dt', '-I d', '-I dtpf', 'DB extra -I dt', 'nowhere', '--par 2 -I dt'],
  ...[
    '--fo -I dtp',
    '--fil 90 -I dt',
    '--u -I dt',
    '--ta pg_default -I dt',
    '--init- dt',
    '--ini dt',
  ],
]

/** Where the two part on purpose: pgbench reads numbers up to what is none. */
const refusedHere = ['-R 5x', '-R inf', '-R nan', '-L 100ms', '-L inf', '--max-tries 2x']

const part = (lines: readonly string[]) => lines.filter((_, i) => bySize(i % 20 === 3, true))

describe.skipIf(isMissing('pgbench'))('command lines', () => {
  const postgres = usePostgres({ version: 15 })
  beforeAll(() => writeFileSync(file, 'select 1;\n'))

  const word = (text: string) =>
    text === '""'
      ? ''
      : text.replaceAll('␣', ' ').replace('FILE', file).replace(/^DB$/, postgres().database)

  async function both(head: readonly string[], line: string) {
    const { user, database, servers } = postgres()
    const args = [
      ...['-h', servers[0]!.host, '-p', String(servers[0]!.port), '-U', user],
      ...head,
      ...line.split(' ').map(word),
    ]
    const folders = [0, 1].map(() => mkdtempSync(join(tmpdir(), 'bench-option-'))) as [
      string,
      string,
    ]
    const env = { LC_ALL: 'C', PGDATABASE: database }
    const [theirs, ours] = await Promise.all([
      runProgram('pgbench', args, { cwd: folders[0], env }),
      runCli(['bench', ...args], { cwd: folders[1], env }),
    ])
    const [theirFiles, ourFiles] = folders.map((folder) => {
      const names = readdirSync(folder).map((name) => name.replace(/\.\d{2,}/, '.PID'))
      rmSync(folder, { recursive: true })
      return names.sort()
    })
    return {
      ours: { code: ours.code, files: ourFiles },
      theirs: { code: theirs.code, files: theirFiles },
      stderr: `${theirs.stderr}\n${ours.stderr}`,
    }
  }

  const run = () => ['-n', '-t', '1', '-f', file]
  test.each(part([...numbers, ...words, ...again, ...abbreviated]))('run: %s', async (line) => {
    // pgbench has no -t beside -T, whose value is taken instead
    const head = /^(-T|--ti)/.test(line) ? run().filter((_, i) => i !== 1 && i !== 2) : run()
    const { ours, theirs, stderr } = await both(head, line)
    expect(ours, stderr).toEqual(theirs)
  })

  test.each(part(init))('init: %s', async (line) => {
    const head = line.startsWith('--ini') ? ['-q'] : ['-i', '-q']
    const { ours, theirs, stderr } = await both(head, line)
    expect(ours, stderr).toEqual(theirs)
  })

  test.each(part(refusedHere))('refused here alone: %s', async (line) => {
    const { ours, theirs } = await both(run(), line)
    expect([theirs.code, ours.code]).toEqual([0, 1])
  })
})

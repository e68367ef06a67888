/** centroids or centroids_path of a vector key → its placement: PgDog's rule, centre number modulo the number of shards. */
import { readFileSync } from 'node:fs'
import type { CentroidPlacement } from '../../sharding/sharded-table.js'
import type { Entry } from '../keys/check-section.js'
import type { Problems } from '../problems.js'

interface Written {
  readonly dataType: string
  readonly centroids: readonly (readonly number[])[]
  readonly centroidsPath: string | undefined
  readonly isMapped: boolean
}

interface Scope {
  readonly shardCount: number
  readonly problems: Problems
}

const isVectors = (value: unknown): value is number[][] =>
  Array.isArray(value) &&
  value.every(
    (one) => Array.isArray(one) && one.every((element) => Number.isFinite(element as number)),
  )

function readFile(path: string, entry: Entry, problems: Problems): readonly (readonly number[])[] {
  const place = entry.placeOf('centroids_path')
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (isVectors(read)) return read
    problems.error(place, `centroids_path: "${path}" is not a JSON list of lists of numbers`)
  } catch (error) {
    problems.error(place, `centroids_path: could not read "${path}": ${(error as Error).message}`)
  }
  return []
}

export function compileCentroids(written: Written, entry: Entry, scope: Scope): CentroidPlacement {
  const { problems, shardCount } = scope
  const { centroidsPath: path } = written
  const key = path === undefined ? 'centroids' : 'centroids_path'
  if (written.dataType !== 'vector')
    problems.error(entry.placeOf(key), `${key} needs data_type = "vector"`)
  if (path !== undefined && written.centroids.length > 0)
    problems.error(entry.placeOf(key), 'centroids and centroids_path: keep one of the two')
  if (written.isMapped)
    problems.error(entry.placeOf('data_type'), 'a vector key has centroids, not a mapping')
  for (const other of ['hasher', 'buckets', 'bucket_map'])
    if (entry.values[other] !== undefined)
      problems.error(entry.placeOf(other), `${other} has no meaning for a vector key`)
  const centroids = path === undefined ? written.centroids : readFile(path, entry, problems)
  checkLengths(centroids, entry, key, problems)
  return { kind: 'centroids', centroids, shards: centroids.map((_, i) => i % shardCount) }
}

function checkLengths(
  centroids: readonly (readonly number[])[],
  entry: Entry,
  key: string,
  problems: Problems,
): void {
  const [first] = centroids
  if (!first || first.length === 0)
    return problems.error(
      entry.placeOf(entry.values[key] === undefined ? 'data_type' : key),
      'a vector key needs centroids',
    )
  const odd = centroids.findIndex((one) => one.length !== first.length)
  if (odd < 0) return
  const lengths = `${centroids[odd]!.length} dimensions, the first ${first.length}`
  problems.error(entry.placeOf(key), `centroid ${odd} has ${lengths}`)
}

/**
 * What is remembered of a cluster in its directory: cluster.json, written before the things that
 * it names are made, and whole or not at all. Process ids are not here: postmaster.pid has them.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { engineError } from '../errors/engine-error.js'

const instance = z.object({
  name: z.string(),
  shard: z.number().int(),
  role: z.enum(['primary', 'replica']),
  port: z.number().int(),
  dataDirectory: z.string(),
})

const state = z.object({
  format: z.literal(1),
  version: z.string(),
  binDirectory: z.string(),
  user: z.object({ name: z.string(), uid: z.number(), gid: z.number() }).optional(),
  database: z.string(),
  password: z.string().optional(),
  socketDirectory: z.string(),
  dataRoot: z.string(),
  settings: z.record(z.string(), z.string()),
  /** False until every data directory is whole; what is there then is made anew. */
  initialized: z.boolean(),
  instances: z.array(instance),
  /** Digests of the files that we wrote, by name: one that differs was edited and is kept. */
  written: z.record(z.string(), z.string()),
})

export type InstanceState = z.infer<typeof instance>
export type ClusterState = z.infer<typeof state>

export const stateFile = (directory: string): string => join(directory, 'cluster.json')

/** The state of the cluster in `directory`, or undefined when there is none. @throws CLUSTER_STATE */
export function readState(directory: string): ClusterState | undefined {
  const file = stateFile(directory)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw engineError('CLUSTER_STATE', { file }, { cause: error, detail: String(error) })
  }
  try {
    return state.parse(JSON.parse(text))
  } catch (error) {
    throw engineError('CLUSTER_STATE', { file }, { cause: error })
  }
}

/** The state, which must be there. @throws CLUSTER_NONE, CLUSTER_STATE */
export function requireState(directory: string): ClusterState {
  const found = readState(directory)
  if (!found) throw engineError('CLUSTER_NONE', { directory })
  return found
}

/** Writes a file so that a reader sees the old or the new, never a part. */
export function writeWhole(file: string, text: string, mode = 0o644): void {
  const draft = `${file}.${process.pid}.new`
  writeFileSync(draft, text, { mode })
  renameSync(draft, file)
}

export function writeState(directory: string, value: ClusterState): void {
  writeWhole(stateFile(directory), `${JSON.stringify(value, null, 2)}\n`, 0o600)
}

/** Makes the directory of a cluster; returns its absolute path. @throws CLUSTER_DIRECTORY */
export function makeDirectory(directory: string): string {
  const path = resolve(directory)
  try {
    mkdirSync(path, { recursive: true, mode: 0o755 })
  } catch (error) {
    throw engineError(
      'CLUSTER_DIRECTORY',
      { directory: path },
      { cause: error, detail: String(error) },
    )
  }
  return path
}

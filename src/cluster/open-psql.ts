/** Opens psql on a server of a cluster, or our own prompt where psql is not installed. */
import { spawn } from 'node:child_process'
import { engineError } from '../errors/engine-error.js'
import { type ClusterServer, clusterStatus } from './cluster.js'
import { type PromptStreams, runPrompt } from './prompt.js'

export interface PsqlOptions {
  directory: string
  shard: number
  /** 0: the primary; from 1 on its replicas. */
  replica: number
  database?: string | undefined
  /** Statements instead of a conversation; none: a conversation. */
  commands: readonly string[]
  /** Never psql, also when it is there. */
  builtin: boolean
  environment: NodeJS.ProcessEnv
  streams: PromptStreams
}

/** The server asked for. @throws CLUSTER_NO_SHARD, CLUSTER_NOT_RUNNING, CLUSTER_NONE */
function pick(servers: readonly ClusterServer[], options: PsqlOptions): ClusterServer {
  const role = options.replica === 0 ? 'primary' : 'replica'
  const found = servers.filter((server) => server.shard === options.shard && server.role === role)
  const server = role === 'primary' ? found[0] : found[options.replica - 1]
  if (!server) {
    const what = role === 'primary' ? role : `replica ${options.replica}`
    throw engineError('CLUSTER_NO_SHARD', { role: what, shard: options.shard })
  }
  if (server.pid === undefined) throw engineError('CLUSTER_NOT_RUNNING', { name: server.name })
  return server
}

/** Exit code of psql; undefined when there is no psql. */
function runPsql(
  parameters: string[],
  environment: NodeJS.ProcessEnv,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const ignore = () => undefined // Ctrl-C is psql's
    process.on('SIGINT', ignore)
    const child = spawn('psql', parameters, { stdio: 'inherit', env: environment })
    child.once('error', (error: NodeJS.ErrnoException) => {
      process.off('SIGINT', ignore)
      if (error.code === 'ENOENT') resolve(undefined)
      else reject(error)
    })
    child.once('exit', (code) => {
      process.off('SIGINT', ignore)
      resolve(code ?? 1)
    })
  })
}

/** Opens the conversation; resolves with its exit code. */
export async function openPsql(options: PsqlOptions): Promise<number> {
  const { cluster } = await clusterStatus(options.directory)
  const server = pick(cluster.servers, options)
  const database = options.database ?? cluster.database
  if (!options.builtin) {
    const parameters = [
      '-h',
      '127.0.0.1',
      '-p',
      String(server.port),
      '-U',
      cluster.user,
      '-d',
      database,
    ]
    for (const command of options.commands) parameters.push('-c', command)
    const environment = { ...options.environment, PGPASSWORD: cluster.password ?? '' }
    const code = await runPsql(parameters, environment)
    if (code !== undefined) return code
  }
  const address = { port: server.port, database, user: cluster.user, password: cluster.password }
  return runPrompt(address, options.streams, options.commands)
}

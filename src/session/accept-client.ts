/** From an accepted socket to a session, or to the console: login, parameters, ReadyForQuery. Never throws; a failure is told to the client. */
import { engineError } from '../errors/engine-error.js'
import { readyFrame } from '../executor/relay.js'
import type { ByteSocket } from '../net/byte-socket.js'
import { Settings } from '../server/settings.js'
import { encodeBackendKeyData } from '../wire/backend-messages.js'
import { FrameReader } from '../wire/frame-reader.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { frontend, TX_IDLE } from '../wire/tags.js'
import { parameterStatusFrame } from './answers.js'
import { newFigures } from './client-figures.js'
import type {
  ClientFigures,
  ClientHandle,
  ClientHoldings,
  ClientIdentity,
  SessionEnvironment,
} from './environment.js'
import { type LoggedIn, Login, loginFailure } from './login/login.js'
import { Session } from './session.js'
import { serverParameters } from './state/server-parameters.js'
import { startupSettings } from './state/startup-settings.js'
import { Transaction } from './state/transaction.js'

/** Takes over a socket that was just accepted; nothing of it has been read. */
export async function acceptClient(
  socket: ByteSocket,
  environment: SessionEnvironment,
): Promise<void> {
  const login = new Login(socket, environment)
  try {
    const client = await login.run()
    if (!client) return
    if (client.parameters.has('replication') && client.parameters.get('replication') !== 'false') {
      throw engineError('LOGIN_REPLICATION')
    }
    if (environment.isAdminDatabase(client.database)) openConsole(client, environment)
    else await openSession(client, environment)
  } catch (error) {
    const failure = loginFailure(error)
    environment.log.info('login refused', {
      address: socket.remoteAddress,
      reason: failure?.message ?? 'the client left',
    })
    login.refuse(failure)
  } finally {
    login.leave()
  }
}

async function openSession(client: LoggedIn, environment: SessionEnvironment): Promise<void> {
  const { socket, user, database } = client
  const access = environment.access(user, database)
  const defaults = await serverParameters(access, Settings.none)
  const settings = startupSettings(client.parameters, defaults)
  const told = await serverParameters(access, settings)
  let processId = 0
  const session = new Session({
    processId: () => processId,
    socket,
    environment,
    access,
    transaction: new Transaction(settings, access.defaultIsolation),
    user,
    database,
    told,
  })
  const identity = environment.register(session, client.cancelKeyBytes)
  processId = identity.processId
  session.onGone = () => identity.leave()
  socket.write(welcome(told, identity))
  for (const chunk of client.rest) session.receive(chunk)
  socket.receiver = session
}

/** ParameterStatus for each, BackendKeyData, ReadyForQuery. */
function welcome(parameters: ReadonlyMap<string, string>, identity: ClientIdentity): Buffer {
  const writer = new FrameWriter()
  encodeBackendKeyData(writer, { processId: identity.processId, secret: identity.cancelKey })
  return Buffer.concat([
    ...[...parameters].map(([name, value]) => parameterStatusFrame(name, value)),
    writer.take(),
    readyFrame(TX_IDLE),
  ])
}

/** Commands that wait behind one that takes its time (PAUSE); then the client is no longer read. */
const CONSOLE_QUEUE_BYTES = 65_536

function openConsole(client: LoggedIn, environment: SessionEnvironment): void {
  const { socket } = client
  const handle = new ConsoleHandle(client, environment.clock.nowMs())
  const identity = environment.register(handle, client.cancelKeyBytes)
  const admin = environment.openAdmin(handle, (bytes) => {
    handle.figures.bytesSent += bytes.length
    socket.write(bytes)
  })
  let waiting = 0
  const reader = new FrameReader((tag, buffer, start, end) => {
    if (tag === frontend.terminate) return socket.end()
    waiting += end - start
    if (waiting > CONSOLE_QUEUE_BYTES) socket.pause()
    void admin.frame(tag, Buffer.from(buffer.subarray(start + 5, end))).then(() => {
      const wasFull = waiting > CONSOLE_QUEUE_BYTES
      waiting -= end - start
      if (wasFull && waiting <= CONSOLE_QUEUE_BYTES) socket.resume()
    })
  })
  const read = (chunk: Buffer) => {
    handle.figures.bytesReceived += chunk.length
    try {
      reader.push(chunk)
    } catch {
      socket.destroy()
    }
  }
  socket.onClose = () => identity.leave()
  socket.write(welcome(consoleParameters, identity))
  for (const chunk of client.rest) read(chunk)
  socket.onChunk = read
}

/** What clients want to hear before they speak to a console. */
const consoleParameters = new Map([
  ['server_version', '15.0 (pgshard console)'],
  ['server_encoding', 'UTF8'],
  ['client_encoding', 'UTF8'],
  ['DateStyle', 'ISO, MDY'],
  ['TimeZone', 'UTC'],
  ['integer_datetimes', 'on'],
  ['standard_conforming_strings', 'on'],
])

const noHoldings: ClientHoldings = {
  servers: [],
  memory: { usedBytes: 0, setAsideBytes: 0, unsentBytes: 0, preparedBytes: 0 },
}

class ConsoleHandle implements ClientHandle {
  readonly user: string
  readonly database: string
  readonly address: string
  readonly port: number
  readonly encrypted: boolean
  readonly connectedAtMs: number
  readonly lastRequestAtMs: number
  readonly applicationName: string
  readonly state = 'idle'
  readonly pins: readonly string[] = []
  readonly preparedStatements = 0
  readonly holdings = noHoldings
  readonly isQuiet = true
  readonly figures: ClientFigures = newFigures()
  readonly #socket: ByteSocket

  constructor(client: LoggedIn, nowMs: number) {
    this.#socket = client.socket
    this.user = client.user
    this.database = client.database
    this.address = client.socket.remoteAddress
    this.port = client.socket.remotePort
    this.encrypted = client.socket.encrypted
    this.connectedAtMs = nowMs
    this.lastRequestAtMs = nowMs
    this.applicationName = client.parameters.get('application_name') ?? ''
  }

  cancel(): void {
    // commands of the console are not interrupted
  }

  end(): void {
    this.#socket.end()
  }
}

/** A worker as its primary sees it: the process, what it was given, how it ended. */
import { type ChildProcess, fork, type SendHandle, type Serializable } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Deferred, deferred } from '../base/deferred.js'
import { type EngineError, engineError } from '../errors/engine-error.js'
import { type AcceptedHandle, closeHandle } from '../net/adopt-accepted.js'
import type { Taker } from './dispatcher.js'
import { Link } from './link.js'
import type { ToPrimary, ToWorker, WorkerStart } from './messages.js'
import { fromRemote } from './remote-error.js'
import type { Beating } from './silence.js'

export interface WorkerEnd {
  /** undefined: it did not say so, it was killed or it broke. */
  readonly isDrained: boolean | undefined
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Why it could not start. */
  readonly failure: EngineError | undefined
}

/** What a worker asks of its primary. */
export interface WorkerEvents {
  asked(worker: WorkerProcess, what: ToPrimary['ask']): unknown
  schemaChanged(worker: WorkerProcess, database: string): void
  /** It did not take the connection. */
  refused(handle: AcceptedHandle): void
  /** Its event loop has not turned for so long. */
  silent(worker: WorkerProcess, forMs: number): void
}

export class WorkerProcess implements Taker, Beating {
  readonly number: number
  readonly processId: number
  readonly startedAtMs: number
  /** The configuration that it runs with, or is about to. */
  config: WorkerStart['config']
  connections = 0
  state: 'starting' | 'ready' | 'draining' | 'gone' = 'starting'
  readonly ready: Promise<void>
  readonly ended: Promise<WorkerEnd>
  readonly #child: ChildProcess
  readonly #link: Link<ToWorker, ToPrimary>
  readonly #events: WorkerEvents
  /** Connections on their way. */
  readonly #given = new Map<number, AcceptedHandle>()
  readonly #isReady: Deferred<void> = deferred()
  #n = 0
  #isDrained: boolean | undefined
  #failure: EngineError | undefined

  constructor(start: WorkerStart, nowMs: number, events: WorkerEvents) {
    this.number = start.number
    this.config = start.config
    this.startedAtMs = nowMs
    this.#events = events
    this.ready = this.#isReady.promise
    this.ready.catch(() => undefined)
    this.#child = fork(
      fileURLToPath(new URL('./worker-main.js', import.meta.url)),
      ['worker', String(start.number)],
      // Structured clones carry what JSON loses: Infinity, bytes, maps.
      { serialization: 'advanced', stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
    )
    this.processId = this.#child.pid ?? 0
    this.#link = new Link<ToWorker, ToPrimary>({
      send: (message, handle) => this.#send(message, handle),
      told: (what) => this.#told(what),
      asked: (what) => events.asked(this, what),
    })
    this.#child.on('message', (message) => this.#link.receive(message))
    this.#child.on('error', () => undefined)
    this.ended = this.#untilEnd()
    this.#link.tell({ kind: 'start', start })
  }

  get isReady(): boolean {
    return this.state === 'ready'
  }

  /** Until it has loaded its code it is busy. */
  get mustAnswer(): boolean {
    return this.state === 'ready' || this.state === 'draining'
  }

  beat(): Promise<unknown> {
    return this.ask({ kind: 'beat' })
  }

  silent(forMs: number): void {
    this.#events.silent(this, forMs)
  }

  ask<T>(what: ToWorker['ask']): Promise<T> {
    return this.#link.ask(what)
  }

  give(handle: AcceptedHandle): void {
    const n = ++this.#n
    this.connections++
    this.#given.set(n, handle)
    this.#link.tell({ kind: 'connection', n }, handle)
  }

  tellSchemaChanged(database: string): void {
    this.#link.tell({ kind: 'schema', database })
  }

  /** Lets transactions finish, then ends; a second time: now. */
  stop(now: boolean): void {
    if (this.state === 'gone') return
    if (now && this.state === 'starting') this.kill()
    this.state = 'draining'
    this.#link.tell({ kind: 'shutdown', now })
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  /** Connections that it has not taken when it ended. */
  takeBack(): AcceptedHandle[] {
    const handles = [...this.#given.values()]
    this.#given.clear()
    return handles
  }

  #send(message: object, handle: AcceptedHandle | undefined): void {
    // What cannot be sent any more is followed by the end of the process, which says so.
    this.#child.send(
      message as Serializable,
      handle as SendHandle,
      { keepOpen: true },
      () => undefined,
    )
  }

  #told(what: ToPrimary['tell'] | undefined): void {
    switch (what?.kind) {
      case 'ready':
        if (this.state === 'starting') this.state = 'ready'
        return this.#isReady.resolve()
      case 'failed':
        this.#failure = fromRemote(what.error)
        return
      case 'taken':
        return this.#taken(what.n, what.isTaken)
      case 'left':
        this.connections -= what.count
        return
      case 'ended':
        this.#isDrained = what.isDrained
        return
      case 'schema':
        return this.#events.schemaChanged(this, what.database)
      default:
    }
  }

  #taken(n: number, isTaken: boolean): void {
    const handle = this.#given.get(n)
    this.#given.delete(n)
    if (!handle) return
    if (isTaken) return closeHandle(handle)
    this.connections--
    this.#events.refused(handle)
  }

  /** After the process has ended and everything that it said was heard. */
  async #untilEnd(): Promise<WorkerEnd> {
    // Not 'disconnect', which does not come while a connection is on its way to a process that dies.
    const { code, signal } = await new Promise<Pick<WorkerEnd, 'code' | 'signal'>>((resolve) => {
      this.#child.once('close', (code, signal) => resolve({ code, signal }))
      this.#child.once('error', () => resolve({ code: null, signal: null }))
    })
    this.state = 'gone'
    const failure = this.#failure
    const gone = engineError('WORKER_GONE', { worker: this.number })
    this.#link.close(gone)
    this.#isReady.reject(failure ?? gone)
    return { isDrained: this.#isDrained, code, signal, failure }
  }
}

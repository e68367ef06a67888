/** The one connection of a hub: commands one behind the other, notifications out whenever they come. */
import type { Clock, Timer } from '../base/clock.js'
import { type Deferred, deferred } from '../base/deferred.js'
import { RingQueue } from '../base/ring-queue.js'
import { type EngineError, engineError } from '../errors/engine-error.js'
import {
  queryFrame,
  type ServerConnection,
  type ServerReceiver,
} from '../server/server-connection.js'
import { serverErrorOf } from '../server/server-error.js'
import { backend } from '../wire/tags.js'
import { type Notification, readNotification } from './notification.js'

export interface HubConnectionEvents {
  notified(notification: Notification): void
  /** All notifications of one read were handed over. */
  settled(): void
  /** Called once. */
  lost(reason: EngineError): void
}

interface Command {
  readonly done: Deferred<void>
  error?: EngineError
}

export class HubConnection implements ServerReceiver {
  readonly server: ServerConnection
  readonly #clock: Clock
  readonly #answerMs: number
  readonly #events: HubConnectionEvents
  readonly #running = new RingQueue<Command>()
  /** What the server said before it closed the connection. */
  #farewell: EngineError | undefined
  #watchdog: Timer | undefined
  #isLost = false

  constructor(
    server: ServerConnection,
    options: { clock: Clock; answerMs: number; events: HubConnectionEvents },
  ) {
    this.server = server
    this.#clock = options.clock
    this.#answerMs = options.answerMs
    this.#events = options.events
    server.receiver = this
  }

  /** Runs statements that give no rows. @throws the server's error, or why the connection was lost */
  run(sql: string): Promise<void> {
    if (this.server.lost) return Promise.reject(this.server.lost)
    const command: Command = { done: deferred() }
    this.#running.push(command)
    this.#watchdog ??= this.#clock.after(this.#answerMs, () => this.#expired())
    this.server.write(queryFrame(sql), 1)
    return command.done.promise
  }

  /** Ends it; only who waits for a command hears of it. */
  close(reason: EngineError): void {
    this.#isLost = true
    this.#watchdog?.cancel()
    this.server.close()
    this.#rejectAll(reason)
  }

  rows(): void {
    // its statements give none
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    switch (tag) {
      case backend.notificationResponse:
        return this.#events.notified(readNotification(buffer, start, end))
      case backend.parameterStatus:
        return this.server.parameterStatus(buffer, start, end)
      case backend.errorResponse:
        return this.#failed(serverErrorOf(buffer, start, end))
      case backend.readyForQuery:
        return this.#ready(buffer[start + 5] as number)
    }
  }

  endOfRead(): void {
    this.#events.settled()
  }

  serverLost(error: EngineError): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#watchdog?.cancel()
    const reason = this.#farewell ?? error
    this.#rejectAll(reason)
    this.#events.lost(reason)
  }

  #rejectAll(reason: EngineError): void {
    while (this.#running.size > 0) this.#running.shift()?.done.reject(reason)
  }

  #failed(error: EngineError): void {
    const command = this.#running.peek()
    if (command) command.error ??= error
    this.#farewell = error
  }

  #ready(status: number): void {
    this.server.ready(status)
    this.#farewell = undefined
    this.#watchdog?.cancel()
    this.#watchdog = undefined
    const command = this.#running.shift()
    if (this.#running.size > 0)
      this.#watchdog = this.#clock.after(this.#answerMs, () => this.#expired())
    if (command?.error) command.done.reject(command.error)
    else command?.done.resolve()
  }

  #expired(): void {
    this.#farewell = engineError('PUBSUB_SILENT', {
      server: this.server.label,
      limit: this.#answerMs,
    })
    this.server.destroy()
  }
}

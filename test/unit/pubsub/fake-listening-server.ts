/** A server as a hub sees it: notes what it is told, answers when the test says so, notifies. */
import type { EngineError } from '../../../src/errors/engine-error.js'
import { engineError } from '../../../src/errors/engine-error.js'
import type { ServerConnection, ServerReceiver } from '../../../src/server/server-connection.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { backend, TX_IDLE } from '../../../src/wire/tags.js'

export class FakeListeningServer {
  readonly label = 'db:5432'
  receiver: ServerReceiver | undefined
  lost: EngineError | undefined
  /** Statements, in order. */
  readonly told: string[] = []
  /** Answers at once. */
  isPrompt = true

  get connection(): ServerConnection {
    return this as unknown as ServerConnection
  }

  write(bytes: Buffer): boolean {
    this.told.push(bytes.toString('utf8', 5, bytes.length - 1))
    if (this.isPrompt) this.answer()
    return true
  }

  ready(): void {
    // the hub notes it
  }

  close(): void {
    this.lost = engineError('SERVER_CLOSED_BY_US', { server: this.label })
  }

  destroy(): void {
    this.end('destroyed')
  }

  answer(): void {
    this.#frame(new FrameWriter().begin(backend.readyForQuery).byte(TX_IDLE).end().take())
  }

  notify(channel: string, payload = '', processId = 7): void {
    const writer = new FrameWriter().begin(backend.notificationResponse).int32(processId)
    this.#frame(writer.cstring(channel).cstring(payload).end().take())
    this.receiver?.endOfRead()
  }

  fail(message: string): void {
    const writer = new FrameWriter().begin(backend.errorResponse)
    for (const [letter, text] of Object.entries({ S: 'ERROR', V: 'ERROR', C: '57P01', M: message }))
      writer.byte(letter.charCodeAt(0)).cstring(text)
    this.#frame(writer.byte(0).end().take())
  }

  end(reason: string): void {
    this.lost ??= engineError('SERVER_ENDED', { server: this.label, reason })
    this.receiver?.serverLost(this.lost)
  }

  #frame(frame: Buffer): void {
    this.receiver?.frame(frame[0] as number, frame, 0, frame.length)
  }
}

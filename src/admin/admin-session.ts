/**
 * One client of the admin database, after its login: frames in, frames out, in the simple and the extended protocol.
 * Sees the proxy only through ProxyView and ConsoleControl. Statements run one after the other, in order.
 */
import { type EngineError, engineError, toEngineError } from '../errors/engine-error.js'
import {
  encodeCommandComplete,
  encodeDataRow,
  encodeEmptyBackend,
  encodeParameterDescription,
  encodeReadyForQuery,
  encodeRowDescription,
} from '../wire/backend-messages.js'
import { encodeErrorResponse } from '../wire/error-response.js'
import { FrameWriter } from '../wire/frame-writer.js'
import {
  decodeBind,
  decodeClose,
  decodeDescribe,
  decodeExecute,
  decodeParse,
  decodeQuery,
} from '../wire/frontend-messages.js'
import { frontend, TX_IDLE, TX_OPEN } from '../wire/tags.js'
import { type AdminCommand, parseCommand, splitStatements } from './admin-command.js'
import {
  type Answer,
  type AnswerContext,
  type AnswerShape,
  answerCommand,
  shapeOf,
} from './answer-command.js'
import { encodeCell, fieldOf } from './cell.js'
import type { ConsoleControl } from './move-control.js'

export interface AdminSession {
  /** One frame of the client; `body` is without tag and length, and is not kept. Resolves when it was dealt with, after those before it. */
  frame(tag: number, body: Buffer): Promise<void>
}

interface Portal {
  readonly command: AdminCommand
  readonly formats: readonly number[]
  /** Rows not sent yet; undefined until it is run. */
  rest: Answer | undefined
}

export interface AdminIdentity {
  readonly user: string
  readonly database: string
}

export function openAdminSession(
  send: (bytes: Buffer) => void,
  view: AnswerContext['view'],
  control: ConsoleControl,
  identity: AdminIdentity,
): AdminSession {
  const conversation = new Conversation(send, view, control, identity)
  return { frame: (tag, body) => conversation.take(tag, Buffer.from(body)) }
}

class Conversation {
  readonly #send: (bytes: Buffer) => void
  readonly #view: AnswerContext['view']
  readonly #control: ConsoleControl
  readonly #identity: AdminIdentity
  readonly #writer = new FrameWriter()
  readonly #statements = new Map<string, AdminCommand>()
  readonly #portals = new Map<string, Portal>()
  readonly #settings = new Map<string, string>()
  #status = TX_IDLE
  /** After an error in the extended protocol, until Sync. */
  #isSkipping = false
  #line: Promise<void> = Promise.resolve()

  constructor(
    send: (bytes: Buffer) => void,
    view: AnswerContext['view'],
    control: ConsoleControl,
    identity: AdminIdentity,
  ) {
    this.#send = send
    this.#view = view
    this.#control = control
    this.#identity = identity
  }

  /** Resolves when the frame was dealt with. */
  take(tag: number, body: Buffer): Promise<void> {
    this.#line = this.#line.then(async () => {
      if (tag === frontend.query) await this.#simple(body)
      else if (tag === frontend.sync) this.#ready()
      else if (!this.#isSkipping) await this.#extended(tag, body)
      this.#flush()
    })
    return this.#line
  }

  async #simple(body: Buffer): Promise<void> {
    this.#isSkipping = false
    try {
      for (const statement of splitStatements(decodeQuery(body))) {
        const command = parseCommand(statement)
        const shape = this.#shapeOf(command)
        if (shape) this.#describe(shape, [])
        this.#finish(await this.#run(command), [], 0)
      }
    } catch (error) {
      encodeErrorResponse(this.#writer, toEngineError(error))
    }
    this.#ready()
  }

  async #extended(tag: number, body: Buffer): Promise<void> {
    try {
      if (tag === frontend.parse) this.#parse(body)
      else if (tag === frontend.bind) this.#bind(body)
      else if (tag === frontend.describe) this.#describeNamed(body)
      else if (tag === frontend.execute) await this.#execute(body)
      else if (tag === frontend.close) this.#close(body)
      else if (tag !== frontend.flush && tag !== frontend.terminate) throw this.#unexpected(tag)
    } catch (error) {
      this.#isSkipping = true
      encodeErrorResponse(this.#writer, toEngineError(error))
    }
  }

  #unexpected(tag: number): EngineError {
    return engineError('WIRE_UNEXPECTED', {
      tag: String.fromCharCode(tag),
      where: 'on the admin database',
    })
  }

  #parse(body: Buffer): void {
    const { name, sql } = decodeParse(body)
    this.#statements.set(name, parseCommand(sql))
    encodeEmptyBackend(this.#writer, 'parseComplete')
  }

  #bind(body: Buffer): void {
    const { portal, statement, values, resultFormats } = decodeBind(body)
    if (values.length > 0) {
      throw engineError('ADMIN_UNSUPPORTED', {
        command: 'a parameter',
        instead: 'write the value into the command',
      })
    }
    const command = this.#statementOf(statement)
    this.#portals.set(portal, { command, formats: resultFormats, rest: undefined })
    encodeEmptyBackend(this.#writer, 'bindComplete')
  }

  #describeNamed(body: Buffer): void {
    const { kind, name } = decodeDescribe(body)
    let shape: AnswerShape | undefined
    let formats: readonly number[] = []
    if (kind === 'statement') {
      shape = this.#shapeOf(this.#statementOf(name))
      encodeParameterDescription(this.#writer, [])
    } else {
      const portal = this.#portalOf(name)
      shape = this.#shapeOf(portal.command)
      formats = portal.formats
    }
    if (shape) this.#describe(shape, formats)
    else encodeEmptyBackend(this.#writer, 'noData')
  }

  async #execute(body: Buffer): Promise<void> {
    const { portal: name, maxRows } = decodeExecute(body)
    const portal = this.#portalOf(name)
    portal.rest ??= await this.#run(portal.command)
    this.#finish(portal.rest, portal.formats, maxRows)
  }

  #close(body: Buffer): void {
    const { kind, name } = decodeClose(body)
    if (kind === 'statement') this.#statements.delete(name)
    else this.#portals.delete(name)
    encodeEmptyBackend(this.#writer, 'closeComplete')
  }

  async #run(command: AdminCommand): Promise<Answer> {
    if (command.kind === 'session') {
      if (command.transaction) this.#status = command.transaction === 'begin' ? TX_OPEN : TX_IDLE
      if (command.set) this.#settings.set(command.set.name, command.set.value)
      if (command.tag === 'DISCARD ALL' || command.tag === 'DEALLOCATE') this.#statements.clear()
    }
    return answerCommand(command, {
      view: this.#view,
      control: this.#control,
      identity: this.#identity,
      settings: this.#settings,
    })
  }

  #shapeOf(command: AdminCommand): AnswerShape | undefined {
    return shapeOf(command, this.#identity.database)
  }

  #describe(shape: AnswerShape, formats: readonly number[]): void {
    encodeRowDescription(
      this.#writer,
      shape.map((column, i) => fieldOf(column, formatAt(formats, i))),
    )
  }

  /** Sends the rows and the tag; at most `maxRows` rows when it is positive. */
  #finish(answer: Answer, formats: readonly number[], maxRows: number): void {
    const { columns, rows, tag } = answer
    if (tag === '') {
      encodeEmptyBackend(this.#writer, 'emptyQueryResponse')
      return
    }
    const taken = maxRows > 0 ? rows.splice(0, maxRows) : rows.splice(0)
    for (const row of taken) {
      encodeDataRow(
        this.#writer,
        row.map((cell, i) => encodeCell(cell, columns[i]?.type ?? 'text', formatAt(formats, i))),
      )
    }
    if (rows.length > 0) encodeEmptyBackend(this.#writer, 'portalSuspended')
    else encodeCommandComplete(this.#writer, tag)
  }

  #ready(): void {
    this.#isSkipping = false
    if (this.#status === TX_IDLE) this.#portals.clear()
    encodeReadyForQuery(this.#writer, this.#status)
  }

  #flush(): void {
    if (this.#writer.size > 0) this.#send(this.#writer.take())
  }

  #statementOf(name: string): AdminCommand {
    const command = this.#statements.get(name)
    if (!command) throw engineError('ADMIN_NO_STATEMENT', { what: 'prepared statement', name })
    return command
  }

  #portalOf(name: string): Portal {
    const portal = this.#portals.get(name)
    if (!portal) throw engineError('ADMIN_NO_STATEMENT', { what: 'portal', name })
    return portal
  }
}

const formatAt = (formats: readonly number[], index: number): number =>
  formats.length === 1 ? (formats[0] ?? 0) : (formats[index] ?? 0)

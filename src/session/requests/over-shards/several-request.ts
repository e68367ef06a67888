/**
 * One statement that several servers work for, as its client sent it in either protocol, and the frames by which a server
 * is asked for another text in its place. What the client waits for is answered once, whatever the servers say.
 */
import { engineError } from '../../../errors/engine-error.js'
import type { BoundParameters, PlannedStatement } from '../../../plan/plan.js'
import { renumberParameters } from '../../../routing/renumber-parameters.js'
import { queryFrame } from '../../../server/server-connection.js'
import { FrameWriter } from '../../../wire/frame-writer.js'
import { frontend } from '../../../wire/tags.js'
import { bindCompleteFrame, closeCompleteFrame, parseCompleteFrame } from '../../answers.js'
import { type BindItem, namedFrame, parseFrame, syncFrame } from '../batch.js'
import type { Step } from '../batch-steps.js'

const nothing = Buffer.alloc(0)

export class SeveralRequest {
  readonly protocol: 'simple' | 'extended'
  readonly statement: PlannedStatement
  /** The client's text of this statement alone. */
  readonly sql: string
  /** Absent: a simple query, which has none. Lent by the batch, which lives as long as the request. */
  readonly parameters: BoundParameters | undefined
  /** As in Parse: 0 or absent is left to the server. */
  readonly parameterTypes: readonly number[]
  /** As in Bind: none is text for all, one is for all. */
  readonly resultFormats: readonly number[]
  /** Most rows that Execute asks for; 0: all. */
  readonly rowLimit: number
  /** The client's name of the portal that a Bind made. */
  readonly portal: string | undefined
  /** False: the portal was only bound and described. */
  readonly executes: boolean
  /** RowDescription of the answer is the client's. */
  readonly describesPortal: boolean
  /** Describe of the statement stands in the same batch: ParameterDescription and RowDescription come before BindComplete. */
  readonly describesStatement: boolean
  readonly #parsed: (() => void) | undefined
  readonly #closes: readonly (() => void)[]

  private constructor(options: {
    protocol: 'simple' | 'extended'
    statement: PlannedStatement
    sql: string
    parameters?: BoundParameters | undefined
    parameterTypes?: readonly number[]
    resultFormats?: readonly number[]
    rowLimit?: number
    portal?: string
    executes?: boolean
    describesPortal?: boolean
    describesStatement?: boolean
    parsed?: (() => void) | undefined
    closes?: readonly (() => void)[]
  }) {
    this.protocol = options.protocol
    this.statement = options.statement
    this.sql = options.sql
    this.parameters = options.parameters
    this.parameterTypes = options.parameterTypes ?? []
    this.resultFormats = options.resultFormats ?? []
    this.rowLimit = options.rowLimit ?? 0
    this.portal = options.portal
    this.executes = options.executes ?? true
    this.describesPortal = options.describesPortal ?? true
    this.describesStatement = options.describesStatement ?? false
    this.#parsed = options.parsed
    this.#closes = options.closes ?? []
  }

  /** A question of ours about the client's parameters, whose answer the client does not see. */
  static ofQuestion(
    { parameters }: SeveralRequest,
    question: {
      readonly statement: PlannedStatement
      readonly sql: string
      readonly types: readonly number[]
      readonly formats: readonly number[]
    },
  ): SeveralRequest {
    const { statement, sql, types: parameterTypes, formats: resultFormats } = question
    return new SeveralRequest({
      protocol: 'extended',
      statement,
      sql,
      parameters,
      parameterTypes,
      resultFormats,
    })
  }

  /** Of a Query with one statement; `text` is the whole string. */
  static ofQuery(statement: PlannedStatement, text: string): SeveralRequest {
    const sql = text.slice(statement.start, statement.end)
    return new SeveralRequest({ protocol: 'simple', statement, sql })
  }

  /**
   * Of a batch up to its Sync, about one statement and one portal.
   * @throws SESSION_SEVERAL_SHARDS_IN_REQUEST and the errors that the batch's steps stand for
   */
  static ofBatch(steps: readonly Step[]): SeveralRequest {
    for (const step of steps) refuseStep(step)
    const only = <K extends Step['kind']>(kind: K): Extract<Step, { kind: K }> | undefined => {
      const found = steps.filter((step) => step.kind === kind)
      if (found.length > 1 && kind !== 'describe' && kind !== 'close') throw severalStatements()
      return found[0] as Extract<Step, { kind: K }> | undefined
    }
    const bind = only('bind')
    const planned = bind?.statement?.planned
    const statement = planned?.statements[0]
    if (!bind?.statement || !planned || !statement) throw severalStatements()
    const client = bind.statement
    const sql = planned.text.slice(statement.start, statement.end)
    checkParameters(sql, client.shared.parameterTypes, bind.item)
    const parse = only('parse')
    const execute = only('execute')
    const describes = steps.flatMap((step) => (step.kind === 'describe' ? [step.item.what] : []))
    return new SeveralRequest({
      protocol: 'extended',
      statement,
      sql,
      parameters: bind.item.parameters,
      parameterTypes: client.shared.parameterTypes,
      resultFormats: resultFormatsOf(bind.item),
      rowLimit: Math.max(execute?.item.maxRows ?? 0, 0),
      portal: bind.item.portal,
      executes: execute !== undefined,
      describesPortal: describes.includes('P'),
      describesStatement: describes.includes('S'),
      parsed: parse && (() => (client.confirmed = true)),
      closes: steps.flatMap((step) =>
        step.kind === 'close' ? [step.confirm ?? (() => undefined)] : [],
      ),
    })
  }

  /**
   * What a server hears for `sql`, up to one ReadyForQuery. It answers a Query with RowDescription (where there are rows),
   * rows and CommandComplete; in the extended protocol ParseComplete and BindComplete come first, and NoData where there
   * are no rows, and the last of all is missing where the client asks for no Execute. `sql` names parameters by the client's numbers. `hidden`: columns behind the client's own.
   */
  framesFor(sql: string, hidden = 0, types: readonly number[] = this.parameterTypes): Buffer {
    if (this.protocol === 'simple') return queryFrame(sql)
    const text = renumberParameters(sql)
    const all = Array.from({ length: this.parameters?.count ?? 0 }, (_, i) => i)
    // a text that names none of the client's parameters still must fit its Bind
    const kept = text.kept.filter((index) => index < all.length)
    const declared = kept.map((index) => types[index] ?? 0)
    return Buffer.concat([
      parseFrame('', text.sql, declared),
      this.#bindFrame(kept, hidden),
      namedFrame('describe', 'P', ''),
      ...(this.executes ? [executeAll] : []),
      syncFrame,
    ])
  }

  /** What a server hears for a question of ours about the client's parameters, in the extended protocol whatever the client's. */
  asking(sql: string, types: readonly number[], formats: readonly number[]): Buffer {
    const text = renumberParameters(sql)
    return Buffer.concat([
      parseFrame(
        '',
        text.sql,
        text.kept.map((index) => types[index] ?? 0),
      ),
      this.#bindFrame(text.kept, 0, formats),
      namedFrame('describe', 'P', ''),
      executeAll,
      syncFrame,
    ])
  }

  /** Parse and Describe of the client's own text, for the one server that tells its columns; they go before `framesFor`. */
  describingFrames(types = this.parameterTypes): Buffer {
    if (!this.describesStatement) return nothing
    const parse = parseFrame('', this.sql, types)
    return Buffer.concat([parse, namedFrame('describe', 'S', '')])
  }

  /** Parse and Describe of the client's own text, or a part of it, alone, up to a ReadyForQuery: for the types of its parameters. */
  askingTypes(sql?: string, types: readonly number[] = this.parameterTypes): Buffer {
    const text = sql === undefined ? undefined : renumberParameters(sql)
    const kept = text?.kept.map((index) => types[index] ?? 0) ?? types
    const parse = parseFrame('', text?.sql ?? this.sql, kept)
    return Buffer.concat([parse, namedFrame('describe', 'S', ''), syncFrame])
  }

  /** What the client hears before RowDescription and rows: `description` answers its Describe of the statement. */
  opening(description: Buffer = nothing): Buffer {
    if (this.protocol === 'simple') return nothing
    this.#parsed?.()
    const parsed = this.#parsed ? parseCompleteFrame : nothing
    return Buffer.concat([
      parsed,
      this.describesStatement ? description : nothing,
      bindCompleteFrame,
    ])
  }

  /** What the client hears behind CommandComplete. */
  closing(): Buffer {
    for (const confirm of this.#closes) confirm()
    return Buffer.concat(this.#closes.map(() => closeCompleteFrame))
  }

  #bindFrame(kept: readonly number[], hidden: number, own?: readonly number[]): Buffer {
    const { parameters } = this
    const writer = new FrameWriter(256).begin(frontend.bind).cstring('').cstring('')
    writer.int16(kept.length)
    for (const index of kept) writer.int16(parameters?.format(index) ?? 0)
    writer.int16(kept.length)
    for (const index of kept) {
      if (!parameters || parameters.isNull(index)) writer.value(null)
      else writer.value(parameters.buffer.subarray(parameters.start(index), parameters.end(index)))
    }
    const formats = own ?? this.resultFormats
    const shown = formats.length > 1 ? [...formats, ...new Array<number>(hidden).fill(0)] : formats
    writer.int16(shown.length)
    for (const format of shown) writer.int16(format)
    return writer.end().take()
  }
}

/**
 * What one server would say of the client's own parameters: shards are sent texts that name only some of them.
 * @throws SESSION_PARAMETER_TYPE, SESSION_PARAMETER_COUNT
 */
function checkParameters(
  sql: string,
  types: readonly number[],
  { statement, parameters }: BindItem,
): void {
  const { kept } = renumberParameters(sql)
  const required = requiredOf(kept, types)
  if (parameters.count !== required)
    throw engineError('SESSION_PARAMETER_COUNT', { given: parameters.count, statement, required })
  for (let index = 0; index < required; index++) {
    if ((types[index] ?? 0) === 0 && !kept.includes(index))
      throw engineError('SESSION_PARAMETER_TYPE', { parameter: `$${index + 1}` })
  }
}

const requiredOf = (kept: readonly number[], types: readonly number[]): number =>
  Math.max(types.length, (kept.at(-1) ?? -1) + 1)

/**
 * The Parse and Bind of a batch whose Bind must fail for its number of parameters: a server that hears them tells what is
 * wrong with the statement first, if anything is. Undefined: it need not fail, or no statement is made in it.
 */
export function hopelessBind(steps: readonly Step[]): Step[] | undefined {
  const opening = steps.filter(({ kind }) => kind === 'parse' || kind === 'bind')
  const [parse, bind] = opening
  if (parse?.kind !== 'parse' || bind?.kind !== 'bind' || opening.length > 2) return undefined
  if (!bind.statement) return undefined
  const { planned, shared } = bind.statement
  const required = requiredOf(renumberParameters(planned.text).kept, shared.parameterTypes)
  return bind.item.parameters.count === required ? undefined : opening
}

const severalStatements = () => engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')

const executeAll = new FrameWriter(16).begin(frontend.execute).cstring('').int32(0).end().take()

function refuseStep(step: Step): void {
  if (step.kind === 'malformed') throw step.item.error
  if (step.kind === 'duplicate')
    throw engineError('SESSION_STATEMENT_EXISTS', { name: step.item.name })
  if (step.kind !== 'error') return
  if ('error' in step) throw step.error
  throw engineError('INTERNAL', { message: 'the error of one server for several' })
}

/** The formats at the end of a Bind, which was checked when it was read. */
function resultFormatsOf({
  frame,
  parameters,
  restStart,
}: {
  readonly frame: Buffer
  readonly parameters: BoundParameters
  readonly restStart: number
}): number[] {
  let at = restStart + 2 + frame.readUInt16BE(restStart) * 2 + 2
  for (let i = 0; i < parameters.count; i++) at += 4 + Math.max(frame.readInt32BE(at), 0)
  const count = at + 2 <= frame.length ? frame.readUInt16BE(at) : 0
  if (at + 2 + count * 2 !== frame.length) {
    throw engineError('WIRE_TRUNCATED', { tag: 'B', field: 'result formats' })
  }
  return Array.from({ length: count }, (_, i) => frame.readInt16BE(at + 2 + i * 2))
}

/**
 * Conversations of one client as frames: simple and extended protocol, pipelines with errors, Flush, portals in portions,
 * COPY, malformed bodies. Each step ends with what ReadyForQuery answers.
 */
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { encodeBind } from '../../../src/wire/frontend-messages.js'
import { frontend } from '../../../src/wire/tags.js'
import type { Chooser } from './chooser.js'
import { observeSettings, sessionStatement } from './session-statements.js'

type ClientMessage =
  | { readonly kind: 'query'; readonly sql: string }
  | {
      readonly kind: 'parse'
      readonly name: string
      readonly sql: string
      readonly types: readonly number[]
    }
  | {
      readonly kind: 'bind'
      readonly portal: string
      readonly statement: string
      readonly values: readonly (string | null)[]
    }
  | { readonly kind: 'describe' | 'close'; readonly what: 'S' | 'P'; readonly name: string }
  | { readonly kind: 'execute'; readonly portal: string; readonly maxRows: number }
  | { readonly kind: 'copy'; readonly rows: string; readonly ends: 'done' | 'fail' }
  | { readonly kind: 'raw'; readonly tag: string; readonly body: string }
  | { readonly kind: 'sync' | 'flush' }

/** What is sent in one write. */
export type Step = readonly ClientMessage[]

export interface Scenario {
  /** Parameters of the startup packet beyond user and database. */
  readonly startup: Readonly<Record<string, string>>
  readonly steps: readonly Step[]
}

const startups: readonly Readonly<Record<string, string>>[] = [
  {},
  {},
  {},
  { options: '-c work_mem=2MB -c search_path=s2,public' },
  { options: '-c default_transaction_isolation=repeatable\\ read' },
  { DateStyle: 'ISO, DMY', TimeZone: 'Asia/Tokyo' },
  { options: '--statement_timeout=70000 -cextra_float_digits=0', 'my.var': 'start' },
  { client_encoding: 'UTF8', search_path: '"$user", public, s2' },
]

/** A conversation of at least one step. */
export function scenario(choose: Chooser): Scenario {
  const steps: Step[] = []
  const count = 4 + choose.below(14)
  while (steps.length < count) {
    steps.push(step(choose))
    if (choose.chance(0.3)) steps.push([{ kind: 'query', sql: observeSettings }])
  }
  return {
    startup: { application_name: choose.pick(['', 'start']), ...choose.pick(startups) },
    steps,
  }
}

function step(choose: Chooser): Step {
  const kind = choose.below(100)
  if (kind < 45) return [{ kind: 'query', sql: sessionStatement(choose) }]
  if (kind < 53) return [{ kind: 'query', sql: several(choose) }]
  if (kind < 57) return copyStep(choose)
  if (kind < 90) return extended(choose)
  if (kind < 97) return [...extended(choose), ...extended(choose)]
  return [{ kind: 'query', sql: sessionStatement(choose) }, ...extended(choose)]
}

const several = (choose: Chooser): string =>
  choose.some(2, 4, () => sessionStatement(choose)).join('; ')

const copyData = (choose: Chooser): ClientMessage => ({
  kind: 'copy',
  rows: choose.pick(['7\tseven\n8\t\\N\n', '1\tdouble\n', 'x\ty\n', '', '9\n']),
  ends: choose.chance(0.8) ? 'done' : 'fail',
})

const copySql = 'copy t from stdin'

function copyStep(choose: Chooser): Step {
  if (choose.chance(0.5)) return [{ kind: 'query', sql: copySql }, copyData(choose)]
  return [
    ...(choose.chance(0.4) ? piece(choose) : []),
    { kind: 'parse', name: '', sql: copySql, types: [] },
    { kind: 'bind', portal: '', statement: '', values: [] },
    ...(choose.chance(0.3) ? ([{ kind: 'describe', what: 'P', name: '' }] as const) : []),
    { kind: 'execute', portal: '', maxRows: 0 },
    copyData(choose),
    { kind: 'sync' },
  ]
}

const statementName = (choose: Chooser): string => choose.pick(['', '', '', 's1', 's2'])
const portalName = (choose: Chooser): string => choose.pick(['', '', '', 'p1', 'c1'])

const parametrised: readonly (readonly [string, readonly number[]])[] = [
  ['select $1::int + 1 as n', []],
  ['select $1 as given', [25]],
  ['select id, v from t where id = $1', [23]],
  ['select id, v from t where id >= $1 order by 1', []],
  ['insert into t values ($1, $2)', []],
  ['select * from d where id >= $1 order by 1', []],
]

function parse(choose: Chooser, name: string): ClientMessage {
  if (choose.chance(0.4)) {
    const [sql, types] = choose.pick(parametrised)
    return { kind: 'parse', name, sql, types }
  }
  if (choose.chance(0.05)) return { kind: 'parse', name, sql: 'select 1; select 2', types: [] }
  return { kind: 'parse', name, sql: sessionStatement(choose), types: [] }
}

const fits = (sql: string): readonly string[] =>
  sql.includes('$2') ? ['6', 'six'] : sql.includes('$1') ? ['2'] : []

/** Messages of one statement, without Sync. */
function piece(choose: Chooser): ClientMessage[] {
  const name = statementName(choose)
  const messages = choose.chance(name === '' ? 0.9 : 0.5) ? preparing(choose, name) : []
  if (messages.length > 0 && choose.chance(0.15)) return messages
  const made = messages.at(-1)
  if (choose.chance(0.2)) messages.push({ kind: 'describe', what: 'S', name })
  if (choose.chance(0.06)) messages.push(broken(choose))
  return [...messages, ...running(choose, name, valuesFor(choose, made))]
}

function preparing(choose: Chooser, name: string): ClientMessage[] {
  const closes = name !== '' && choose.chance(0.5)
  return [...(closes ? ([{ kind: 'close', what: 'S', name }] as const) : []), parse(choose, name)]
}

/** SQL PREPARE has parameters of its own. */
function valuesFor(choose: Chooser, made: ClientMessage | undefined): readonly (string | null)[] {
  if (made?.kind !== 'parse' || choose.chance(0.05))
    return choose.pick([[], [], ['2'], ['x'], [null], ['6', 'six']])
  return /^prepare/.test(made.sql) ? [] : fits(made.sql)
}

function running(
  choose: Chooser,
  statement: string,
  values: readonly (string | null)[],
): ClientMessage[] {
  const portal = portalName(choose)
  const messages: ClientMessage[] = [{ kind: 'bind', portal, statement, values }]
  if (choose.chance(0.5)) messages.push({ kind: 'describe', what: 'P', name: portal })
  const maxRows = choose.pick([0, 0, 0, 1, 2])
  messages.push({ kind: 'execute', portal, maxRows })
  if (maxRows > 0 && choose.chance(0.5)) messages.push({ kind: 'execute', portal, maxRows: 0 })
  if (choose.chance(0.1)) messages.push({ kind: 'close', what: 'P', name: portal })
  return messages
}

/** Bodies that the server refuses, and goes on. */
const broken = (choose: Chooser): ClientMessage =>
  choose.pick([
    { kind: 'raw', tag: 'D', body: 'Xname\0' },
    { kind: 'raw', tag: 'C', body: 'Xname\0' },
    { kind: 'raw', tag: 'B', body: '\0\0\0' },
    { kind: 'raw', tag: 'B', body: '\0s1\0\0\0\0\x05\0\0' },
    { kind: 'raw', tag: 'P', body: '\0select 1' },
    { kind: 'raw', tag: 'E', body: '\0' },
    { kind: 'raw', tag: 'D', body: 'Sname' },
    { kind: 'raw', tag: 'C', body: 'Ps1\0more' },
  ])

/** Without a statement: what is there already is described, read on or closed. */
function loose(choose: Chooser): ClientMessage[] {
  const name = choose.pick(['', 's1', 's2'])
  const portal = portalName(choose)
  return [
    choose.pick<ClientMessage>([
      { kind: 'describe', what: 'S', name },
      { kind: 'describe', what: 'P', name: portal },
      { kind: 'execute', portal, maxRows: choose.pick([0, 1]) },
      { kind: 'close', what: 'S', name },
      { kind: 'close', what: 'P', name: portal },
      { kind: 'bind', portal, statement: name, values: [] },
    ]),
  ]
}

const preparesBySql = (message: ClientMessage): boolean =>
  message.kind === 'parse' && message.sql.startsWith('prepare')

function extended(choose: Chooser): ClientMessage[] {
  const messages: ClientMessage[] = []
  const pieces = choose.pick([1, 1, 1, 2, 2, 3])
  for (let i = 0; i < pieces; i++) {
    let next = choose.chance(0.85) ? piece(choose) : loose(choose)
    // what SQL prepares can be bound from the next request on (docs/limits.md)
    while (pieces > 1 && next.some(preparesBySql)) next = piece(choose)
    messages.push(...next)
    if (choose.chance(0.15)) messages.push({ kind: 'flush' })
    if (choose.chance(0.04)) messages.push({ kind: 'query', sql: sessionStatement(choose) })
  }
  messages.push({ kind: 'sync' })
  return messages
}

/** The frames of a step. */
export function encodeStep(messages: Step): Buffer {
  const writer = new FrameWriter()
  for (const message of messages) encodeMessage(writer, message)
  return writer.take()
}

function encodeMessage(writer: FrameWriter, message: ClientMessage): void {
  switch (message.kind) {
    case 'query':
      writer.begin(frontend.query).cstring(message.sql).end()
      return
    case 'parse':
      writer.begin(frontend.parse).cstring(message.name).cstring(message.sql)
      writer.int16(message.types.length)
      for (const type of message.types) writer.int32(type)
      writer.end()
      return
    case 'bind':
      return encodeBind(writer, {
        portal: message.portal,
        statement: message.statement,
        formats: [],
        values: message.values.map((value) => (value === null ? null : Buffer.from(value))),
        resultFormats: [],
      })
    case 'describe':
    case 'close': {
      const tag = message.kind === 'describe' ? frontend.describe : frontend.close
      writer.begin(tag).byte(message.what.charCodeAt(0)).cstring(message.name).end()
      return
    }
    case 'execute':
      writer.begin(frontend.execute).cstring(message.portal).int32(message.maxRows).end()
      return
    case 'copy':
      return encodeCopy(writer, message)
    case 'raw':
      writer.begin(message.tag.charCodeAt(0)).bytes(Buffer.from(message.body, 'latin1')).end()
      return
    case 'sync':
      writer.begin(frontend.sync).end()
      return
    case 'flush':
      writer.begin(frontend.flush).end()
  }
}

function encodeCopy(
  writer: FrameWriter,
  { rows, ends }: Extract<ClientMessage, { kind: 'copy' }>,
): void {
  if (rows !== '') writer.begin(frontend.copyData).bytes(Buffer.from(rows)).end()
  if (ends === 'done') writer.begin(frontend.copyDone).end()
  else writer.begin(frontend.copyFail).cstring('no more').end()
}

/** A step as one line, for reports. */
export function stepText(messages: Step): string {
  return messages.map(messageText).join(' | ')
}

function messageText(message: ClientMessage): string {
  switch (message.kind) {
    case 'query':
      return `Q ${message.sql}`
    case 'parse':
      return `P ${message.name}[${message.types.join()}] ${message.sql}`
    case 'bind':
      return `B ${message.portal}<-${message.statement} ${JSON.stringify(message.values)}`
    case 'execute':
      return `E ${message.portal} ${message.maxRows}`
    case 'copy':
      return `copy ${JSON.stringify(message.rows)} ${message.ends}`
    case 'raw':
      return `${message.tag} ${JSON.stringify(message.body)}`
    case 'describe':
    case 'close':
      return `${message.kind === 'describe' ? 'D' : 'C'} ${message.what} ${message.name}`
    default:
      return message.kind
  }
}

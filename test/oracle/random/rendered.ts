/** A made query as it is asked in each protocol: its literals written out, or as parameters. */
import { binaryOf } from '../../support/key-binary.js'
import type { AskedParameter, Mode } from '../ask.js'
import type { Literal } from './expressions.js'
import type { MadeQuery } from './queries.js'
import { types } from './world.js'

export interface Rendered {
  readonly sql: string
  readonly parameters: readonly AskedParameter[]
}

function written({ type, text }: Literal): string {
  const quoted = `'${text.replaceAll("'", "''")}'`
  switch (type) {
    case 'int':
      return text.startsWith('-') ? `(${text})` : text
    case 'num':
      return `(${text})`
    case 'text':
    case 'word':
    case 'loose':
      return quoted
    default:
      return `${quoted}::${types[type].sql}`
  }
}

const binaryTypes: Partial<Record<Literal['type'], Parameters<typeof binaryOf>[0]>> = {
  int: 'integer',
  big: 'bigint',
  text: 'text',
  uuid: 'uuid',
}

function bound({ type, text }: Literal, isBinary: boolean): AskedParameter {
  const binaryType = isBinary ? binaryTypes[type] : undefined
  return {
    type: types[type].oid,
    format: binaryType ? 1 : 0,
    bytes: binaryType ? binaryOf(binaryType, text) : Buffer.from(text),
  }
}

const mark = /«(\d+)»/g

export function rendered({ sql, literals }: MadeQuery, mode: Mode): Rendered {
  if (mode === 'simple') {
    return {
      sql: sql.replace(mark, (_, index) => written(literals[Number(index)]!)),
      parameters: [],
    }
  }
  const used: Literal[] = []
  const text = sql.replace(mark, (_, index) => {
    const literal = literals[Number(index)]!
    const number = `$${used.push(literal)}`
    return types[literal.type].oid === 0 ? `${number}::${types[literal.type].sql}` : number
  })
  const parameters = used.map((literal) => bound(literal, mode === 'extended binary'))
  return { sql: text, parameters }
}

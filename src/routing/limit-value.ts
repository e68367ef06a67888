/** What LIMIT and OFFSET come to in one run. */
import { stringValue } from '../sql/literal.js'
import type { LimitValue } from '../sql/select.js'
import type { Value } from '../sql/statement.js'
import type { Run } from './key-value.js'

/** null: none; undefined: it cannot be told. */
export type Bound = bigint | null | undefined

const castTypes = new Set([undefined, 'int2', 'int4', 'int8'])
const integerTypes = new Set([0, 705, 20, 21, 23])

function readDigits(text: string): Bound {
  const digits = text.trim().replaceAll('_', '')
  return /^[-+]?\d+$/.test(digits) ? BigInt(digits.replace(/^\+/, '')) : undefined
}

function literalBound(value: Value & { kind: 'slot' }, run: Run): Bound {
  const start = run.slots.starts[value.slot]!
  const end = run.slots.ends[value.slot]!
  if (value.literal === 'bit') return undefined
  if (value.literal !== 'string') {
    const bound = readDigits(run.sql.slice(start, end))
    return typeof bound === 'bigint' && value.negative ? -bound : bound
  }
  const text = stringValue(run.sql, start, end, run.standard)
  return text === undefined ? undefined : readDigits(text)
}

function binaryBound(buffer: Buffer, start: number, end: number): Bound {
  switch (end - start) {
    case 2:
      return BigInt(buffer.readInt16BE(start))
    case 4:
      return BigInt(buffer.readInt32BE(start))
    case 8:
      return buffer.readBigInt64BE(start)
    default:
      return undefined
  }
}

/** Without parameters (a text that is only looked at) there is no bound. */
function parameterBound(index: number, run: Run): Bound {
  const { parameters } = run
  if (!parameters || index >= parameters.count || parameters.isNull(index)) return null
  if (!integerTypes.has(run.context.parameterTypes?.[index] ?? 0)) return undefined
  const start = parameters.start(index)
  const end = parameters.end(index)
  if (parameters.format(index) === 1) return binaryBound(parameters.buffer, start, end)
  return readDigits(parameters.buffer.toString('utf8', start, end))
}

export function boundOf(limit: LimitValue | undefined, run: Run): Bound {
  if (limit === undefined) return null
  if (limit === 'one') return 1n
  if (limit === 'unknown') return undefined
  if (limit.kind === 'null') return null
  if (!castTypes.has(limit.type)) return undefined
  return limit.kind === 'slot' ? literalBound(limit, run) : parameterBound(limit.index, run)
}

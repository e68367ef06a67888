/** Which partial values the shards are asked for instead of an aggregate, and how they are made one. */
import type { Combine } from '../../plan/merge-program.js'
import type { AggregateFacts } from '../../sql/select.js'
import {
  isNumber,
  isOrdered,
  isText,
  type TypeContext,
  type Typed,
  typeOf,
} from '../expression-type.js'
import { type MergeColumns, NotMergeable } from './merge-columns.js'
import type { Piece } from './merge-text.js'

const deviations: Record<string, Combine['by']> = {
  stddev: 'stddev_samp',
  stddev_samp: 'stddev_samp',
  stddev_pop: 'stddev_pop',
  variance: 'var_samp',
  var_samp: 'var_samp',
  var_pop: 'var_pop',
}

/** Aggregates whose partial values are combined by themselves. */
const own: Record<string, Combine['by']> = {
  count: 'count',
  sum: 'sum',
  min: 'min',
  max: 'max',
  bool_and: 'bool_and',
  every: 'bool_and',
  bool_or: 'bool_or',
  bit_and: 'bit_and',
  bit_or: 'bit_or',
  bit_xor: 'bit_xor',
}

const isFloat = (type: number): boolean => type === 700 || type === 701

function checkOwn(by: Combine['by'], typed: Typed | undefined): void {
  if (!typed) return
  if (by === 'sum' && !isNumber(typed.type)) throw new NotMergeable('sum() of this type')
  if (by.startsWith('bit_') && !isNumber(typed.type)) throw new NotMergeable(`${by}() of this type`)
  if ((by === 'min' || by === 'max') && !isOrdered(typed)) {
    const what = isText(typed.type) ? 'text that is not in the order of its bytes' : 'this type'
    throw new NotMergeable(`${by}() of ${what}`)
  }
}

/** Combines output column `column`, which is all of one aggregate. @throws NotMergeable */
export function combineOf(
  column: number,
  aggregate: AggregateFacts,
  columns: MergeColumns,
  context: TypeContext,
): Combine {
  const { name, argument, inside, tail } = aggregate
  const typed = argument && typeOf(argument, context)
  const by = own[name]
  if (by) {
    checkOwn(by, typed)
    const bytewise = typed && isText(typed.type) && typed.bytewise ? { bytewise: true } : {}
    return { column, by, parts: [column], ...bytewise }
  }
  const deviation = deviations[name]
  if ((name !== 'avg' && !deviation) || !argument) throw new NotMergeable(`${name}()`)
  if (!typed || !isNumber(typed.type)) throw new NotMergeable(`${name}() of this type`)
  const part = (...pieces: Piece[]): number => columns.hide([...pieces, ' ', tail])
  const float = isFloat(typed.type)
  const count = () => part('count(', inside, ')')
  if (!deviation) {
    const sum = float ? part('sum((', inside, ')::float8)') : part('sum(', inside, ')')
    return { column, by: 'avg', parts: [sum, count()] }
  }
  const as = float ? 'float8' : 'numeric'
  const sum = part('sum((', inside, `)::${as})`)
  const squares = float
    ? part('regr_sxx((', inside, ')::float8, (', inside, ')::float8)')
    : part('sum((', inside, ')::numeric * (', inside, ')::numeric)')
  return { column, by: deviation, parts: [count(), sum, squares] }
}

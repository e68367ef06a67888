/**
 * What the operators and functions of the script language compute, with pgbench's integer and double rules.
 * AND, OR and CASE, which do not evaluate all their arguments, are in compile.ts.
 * Source followed: evalStandardFunc in pgbench.c, PGBENCH_FUNCTIONS in exprparse.y.
 */
import type { Prng } from '../../topology/prng.js'
import {
  exponential,
  gaussian,
  hashFnv1a,
  hashMurmur2,
  permute,
  uniform,
  zipfian,
} from './random.js'
import {
  formatValue,
  maxInt,
  minInt,
  scriptFailure,
  toBoolean,
  toDouble,
  toInt,
  typeName,
  type Value,
} from './value.js'

export interface FunctionContext {
  readonly prng: Prng
  /** Where debug() writes. */
  readonly debug: (line: string) => void
}

interface ArgumentCount {
  readonly least: number
  readonly most: number
  /** The last argument may be left out and is then :default_seed. */
  readonly hasSeed?: boolean
}

const exactly = (count: number): ArgumentCount => ({ least: count, most: count })
const withSeed = (least: number): ArgumentCount => ({ least, most: least + 1, hasSeed: true })
const oneOrMore: ArgumentCount = { least: 1, most: Number.POSITIVE_INFINITY }

const counts: Readonly<Record<string, ArgumentCount>> = {
  abs: exactly(1),
  debug: exactly(1),
  double: exactly(1),
  exp: exactly(1),
  greatest: oneOrMore,
  hash: withSeed(1),
  hash_fnv1a: withSeed(1),
  hash_murmur2: withSeed(1),
  int: exactly(1),
  least: oneOrMore,
  ln: exactly(1),
  mod: exactly(2),
  permute: withSeed(2),
  pi: exactly(0),
  pow: exactly(2),
  power: exactly(2),
  random: exactly(2),
  random_exponential: exactly(3),
  random_gaussian: exactly(3),
  random_zipfian: exactly(3),
  sqrt: exactly(1),
}

/** How many arguments a function of that name takes; undefined when there is none. */
export const argumentCount = (name: string): ArgumentCount | undefined =>
  Object.hasOwn(counts, name) ? counts[name] : undefined

type Compute = (args: readonly Value[], context: FunctionContext) => Value

function inRange(value: bigint, what: string): bigint {
  if (value < minInt || value > maxInt) throw scriptFailure(`bigint ${what} out of range`)
  return value
}

/** Double when either side is one, else int. */
const arithmetic =
  (ints: (a: bigint, b: bigint) => Value, doubles: (a: number, b: number) => Value): Compute =>
  ([left = null, right = null]) =>
    typeof left === 'number' || typeof right === 'number'
      ? doubles(toDouble(left), toDouble(right))
      : ints(toInt(left), toInt(right))

const bits =
  (compute: (a: bigint, b: bigint) => bigint): Compute =>
  ([left = null, right = null]) =>
    BigInt.asIntN(64, compute(toInt(left), toInt(right)))

const ofDouble =
  (compute: (value: number) => number): Compute =>
  ([value = null]) =>
    compute(toDouble(value))

function divide(left: bigint, right: bigint): bigint {
  if (right === 0n) throw scriptFailure('division by zero')
  return inRange(left / right, 'div')
}

function modulo([left = null, right = null]: readonly Value[]): Value {
  const divisor = toInt(right)
  const dividend = toInt(left)
  if (divisor === 0n) throw scriptFailure('division by zero')
  return dividend % divisor
}

function extremum(args: readonly Value[], isBetter: (a: Value, b: Value) => boolean): Value {
  const hasDouble = args.some((value) => typeof value === 'number')
  const values = args.map((value) => (hasDouble ? toDouble(value) : toInt(value)))
  return values.reduce<Value>((best, value) => (isBetter(value, best) ? value : best), values[0]!)
}

function range([low = null, high = null]: readonly Value[]): { min: bigint; max: bigint } {
  const min = toInt(low)
  const max = toInt(high)
  if (min > max) throw scriptFailure('empty range given to random')
  if (max - min + 1n > maxInt) throw scriptFailure('random range is too large')
  return { min, max }
}

const drawn =
  (draw: (prng: Prng, min: bigint, max: bigint, parameter: number) => bigint): Compute =>
  (args, { prng }) => {
    const { min, max } = range(args)
    return draw(prng, min, max, toDouble(args[2] ?? null))
  }

const hashed =
  (hash: (value: bigint, seed: bigint) => bigint): Compute =>
  ([value = null, seed = null]) =>
    hash(toInt(value), toInt(seed))

function absolute([value = null]: readonly Value[]): Value {
  if (typeof value === 'bigint') return BigInt.asIntN(64, value < 0n ? -value : value)
  const number = toDouble(value)
  return number < 0 ? -number : number
}

function debug([value = null]: readonly Value[], context: FunctionContext): Value {
  const shown = value === null ? 'null' : `${typeName(value)} ${formatValue(value)}`
  context.debug(shown)
  return value
}

const power: Compute = ([base = null, exponent = null]) => {
  const left = toDouble(base)
  const right = toDouble(exponent)
  // C's pow gives 1 where JavaScript gives NaN.
  if (left === 1 || (left === -1 && !Number.isFinite(right) && !Number.isNaN(right))) return 1
  return left ** right
}

const computations: Readonly<Record<string, Compute>> = {
  '+': arithmetic(
    (a, b) => inRange(a + b, 'add'),
    (a, b) => a + b,
  ),
  '-': arithmetic(
    (a, b) => inRange(a - b, 'sub'),
    (a, b) => a - b,
  ),
  '*': arithmetic(
    (a, b) => inRange(a * b, 'mul'),
    (a, b) => a * b,
  ),
  '/': arithmetic(divide, (a, b) => a / b),
  '=': arithmetic(
    (a, b) => a === b,
    (a, b) => a === b,
  ),
  '<>': arithmetic(
    (a, b) => a !== b,
    (a, b) => a !== b,
  ),
  '<': arithmetic(
    (a, b) => a < b,
    (a, b) => a < b,
  ),
  '<=': arithmetic(
    (a, b) => a <= b,
    (a, b) => a <= b,
  ),
  mod: modulo,
  '&': bits((a, b) => a & b),
  '|': bits((a, b) => a | b),
  '#': bits((a, b) => a ^ b),
  // The processor takes the shift modulo 64.
  '<<': bits((a, b) => a << (b & 63n)),
  '>>': bits((a, b) => a >> (b & 63n)),
  '!not': ([value = null]) => !toBoolean(value),
  '!is': ([value, wanted]) => value === wanted,
  pi: () => Math.PI,
  abs: absolute,
  debug,
  double: ofDouble((value) => value),
  sqrt: ofDouble(Math.sqrt),
  ln: ofDouble(Math.log),
  exp: ofDouble(Math.exp),
  int: ([value = null]) => toInt(value),
  least: (args) => extremum(args, (a, b) => a! < b!),
  greatest: (args) => extremum(args, (a, b) => a! > b!),
  random: (args, { prng }) => {
    const { min, max } = range(args)
    return uniform(prng, min, max)
  },
  random_exponential: drawn(exponential),
  random_gaussian: drawn(gaussian),
  random_zipfian: drawn(zipfian),
  pow: power,
  power,
  hash: hashed(hashMurmur2),
  hash_murmur2: hashed(hashMurmur2),
  hash_fnv1a: hashed(hashFnv1a),
  permute: ([value = null, size = null, seed = null]) =>
    permute(toInt(value), toInt(size), toInt(seed)),
}

const maxArguments = 16

/** A function of evaluated arguments. A null argument makes null, but for IS and debug(). What is wrong with the call is said when it runs. */
export function functionOf(name: string, count: number): Compute {
  const apply = computations[name]
  const problem =
    count > maxArguments
      ? `too many function arguments, maximum is ${maxArguments}`
      : apply === undefined && `unexpected function "${name}"`
  if (problem)
    return () => {
      throw scriptFailure(problem)
    }
  const compute = apply as Compute
  if (name === '!is' || name === 'debug') return compute
  return (args, context) => (args.includes(null) ? null : compute(args, context))
}

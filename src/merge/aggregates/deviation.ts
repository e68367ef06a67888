/**
 * stddev and variance from what each shard has counted and summed.
 * @see numeric_stddev_internal in src/backend/utils/adt/numeric.c, float8_combine in float.c
 */
import type { FieldDescription } from '../../wire/backend-messages.js'
import type { Combiner, Parts } from './combiner.js'
import {
  addDecimals,
  type Decimal,
  divideDecimals,
  divisionScale,
  multiplyDecimals,
  notANumber,
  ofInteger,
  rootOf,
  subtractDecimals,
  zero,
} from './decimal.js'
import {
  checkedSum,
  readDecimal,
  readFloat,
  readInteger,
  writeDecimal,
  writeFloat,
} from './values.js'

export interface DeviationKind {
  readonly isSample: boolean
  readonly isRoot: boolean
}

/** Parts: count, sum, sum of squares. */
export class NumericDeviation implements Combiner {
  readonly #fields: readonly FieldDescription[]
  readonly #kind: DeviationKind
  #count = 0n
  #sum: Decimal = zero
  #squares: Decimal = zero

  constructor(fields: readonly FieldDescription[], kind: DeviationKind) {
    this.#fields = fields
    this.#kind = kind
  }

  reset(): void {
    this.#count = 0n
    this.#sum = zero
    this.#squares = zero
  }

  add([count, sum, squares]: Parts): void {
    if (!count || !sum || !squares) return
    this.#count += readInteger(count, this.#fields[0]!)
    this.#sum = addDecimals(this.#sum, readDecimal(sum, this.#fields[1]!))
    this.#squares = addDecimals(this.#squares, readDecimal(squares, this.#fields[2]!))
  }

  result(): Buffer | null {
    const value = this.#value()
    return value && writeDecimal(value, this.#fields[3]!)
  }

  #value(): Decimal | null {
    const { isSample, isRoot } = this.#kind
    if (this.#count <= (isSample ? 1n : 0n)) return null
    if (this.#sum.special || this.#squares.special) return notANumber
    const count = ofInteger(this.#count)
    const numerator = subtractDecimals(
      multiplyDecimals(count, this.#squares),
      multiplyDecimals(this.#sum, this.#sum),
    )
    if (numerator.unscaled <= 0n) return zero
    const divisor = ofInteger(this.#count * (isSample ? this.#count - 1n : this.#count))
    const scale = divisionScale(numerator, divisor)
    const variance = divideDecimals(numerator, divisor, scale)
    return isRoot ? rootOf(variance, scale) : variance
  }
}

/** Parts: count, sum, sum of squared deviations. */
export class FloatDeviation implements Combiner {
  readonly #fields: readonly FieldDescription[]
  readonly #kind: DeviationKind
  #count = 0
  #sum = 0
  #squares = 0

  constructor(fields: readonly FieldDescription[], kind: DeviationKind) {
    this.#fields = fields
    this.#kind = kind
  }

  reset(): void {
    this.#count = 0
    this.#sum = 0
    this.#squares = 0
  }

  add([counted, summed, squared]: Parts): void {
    if (!counted || !summed || !squared) return
    const count = Number(readInteger(counted, this.#fields[0]!))
    if (count === 0) return
    const sum = readFloat(summed, this.#fields[1]!)
    const squares = readFloat(squared, this.#fields[2]!)
    if (this.#count === 0) {
      this.#count = count
      this.#sum = sum
      this.#squares = squares
      return
    }
    const all = this.#count + count
    const apart = this.#sum / this.#count - sum / count
    const between = (this.#count * count * apart * apart) / all
    this.#squares = checkedSum(this.#squares, squares, this.#squares + squares + between)
    this.#sum = checkedSum(this.#sum, sum, this.#sum + sum)
    this.#count = all
  }

  result(): Buffer | null {
    const { isSample, isRoot } = this.#kind
    if (this.#count <= (isSample ? 1 : 0)) return null
    const variance = this.#squares / (isSample ? this.#count - 1 : this.#count)
    return writeFloat(isRoot ? Math.sqrt(variance) : variance, this.#fields[3]!)
  }
}

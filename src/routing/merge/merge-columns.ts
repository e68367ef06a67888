/** Output columns of a SELECT by their numbers, stars spread out, and the hidden ones that a merge adds behind them. */
import type { Expression, ItemFacts, SelectFacts, Span, TargetFacts } from '../../sql/select.js'
import type { Level } from '../../sql/statement.js'
import { bindColumn, sameColumn } from '../columns.js'
import { type TypeContext, type Typed, typeOf } from '../expression-type.js'
import type { Resolved } from '../resolve.js'
import type { Piece } from './merge-text.js'

export interface Output {
  readonly name: string | undefined
  readonly expression: Expression
  /** Absent: a column out of a star. */
  readonly target?: TargetFacts
}

/** Why a statement cannot be merged, in the words of a refusal. */
export class NotMergeable {
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }
}

/** Relations of a star, in the order of its columns; undefined where that cannot be told. */
function starRelations(
  level: Level,
  resolved: readonly Resolved[],
  table: string | undefined,
): readonly Resolved[] | undefined {
  const found = table === undefined ? resolved : resolved.filter(({ use }) => use.alias === table)
  if (table === undefined && (level.hasDerived || level.merged.size > 0)) return undefined
  if (table !== undefined && found.length !== 1) return undefined
  return found.every(({ relation, use }) => relation !== undefined && !use.renamesColumns)
    ? found
    : undefined
}

function starOutputs(
  { star }: TargetFacts,
  level: Level,
  resolved: readonly Resolved[],
): Output[] | undefined {
  const relations = starRelations(level, resolved, star?.table)
  return relations?.flatMap(({ relation, use }) =>
    relation!.columns.map(
      ({ name }): Output => ({
        name,
        expression: { kind: 'column', use: { table: use.alias, column: name } },
      }),
    ),
  )
}

/** Undefined when a star stands for columns that we do not know. */
export function outputsOf(
  select: SelectFacts,
  level: Level,
  resolved: readonly Resolved[],
): Output[] | undefined {
  const outputs: Output[] = []
  for (const target of select.targets) {
    if (target.star) {
      const spread = starOutputs(target, level, resolved)
      if (!spread) return undefined
      outputs.push(...spread)
    } else outputs.push({ name: target.name, expression: target.item.expression, target })
  }
  return outputs
}

/** A column of the shards' rows that a key or a partial value stands in. */
export interface Place {
  readonly column: number
  /** Undefined: not known. */
  readonly typed: Typed | undefined
  /** Its text, to be sorted by under another collation; absent with columns out of a star. */
  readonly span?: Span
}

export class MergeColumns {
  readonly outputs: readonly Output[]
  /** Numbers of output columns that literals of the run say, by slot. */
  readonly #ordinals: ReadonlyMap<number, number>
  readonly #context: TypeContext
  readonly #hidden: Piece[][] = []
  readonly #hiddenKeys = new Map<string, number>()

  constructor(
    outputs: readonly Output[],
    ordinals: ReadonlyMap<number, number>,
    context: TypeContext,
  ) {
    this.outputs = outputs
    this.#ordinals = ordinals
    this.#context = context
  }

  get hiddenCount(): number {
    return this.#hidden.length
  }

  /** Text behind the last output column. */
  get hiddenPieces(): Piece[] {
    return this.#hidden.flatMap((pieces) => [', ', ...pieces])
  }

  hide(pieces: readonly Piece[]): number {
    return this.outputs.length + this.#hidden.push([...pieces]) - 1
  }

  /** The column that holds a key of ORDER BY or DISTINCT ON ('output': names are output columns first) or of GROUP BY. */
  placeOf(item: ItemFacts, first: 'output' | 'input', mayHide: boolean): Place {
    const known = this.#known(item, first)
    if (known !== undefined) return this.#ofOutput(known)
    if (!mayHide) throw new NotMergeable('DISTINCT with ORDER BY an expression')
    const typed = typeOf(item.expression, this.#context)
    const seen = item.contents.hasLiterals ? undefined : this.#hiddenKeys.get(item.key)
    if (seen !== undefined) return { column: seen, typed, span: item.span }
    const column = this.hide(['(', item.span, ')'])
    this.#hiddenKeys.set(item.key, column)
    return { column, typed, span: item.span }
  }

  placeOfOutput(column: number): Place {
    return this.#ofOutput(column)
  }

  #ofOutput(column: number): Place {
    const { expression, target } = this.outputs[column]!
    return {
      column,
      typed: typeOf(expression, this.#context),
      ...(target ? { span: target.span } : {}),
    }
  }

  #known(item: ItemFacts, first: 'output' | 'input'): number | undefined {
    if (item.ordinal !== undefined) return this.#ordinal(item.ordinal)
    if (item.bareName === undefined) return this.#equal(item)
    if (first === 'output') return this.#named(item.bareName) ?? this.#equal(item)
    const { level, places } = this.#context
    const isInput = bindColumn({ column: item.bareName }, level, places) !== undefined
    return isInput ? this.#equal(item) : this.#named(item.bareName)
  }

  #ordinal(slot: number): number {
    const number = this.#ordinals.get(slot) ?? 0
    if (number < 1 || number > this.outputs.length) throw new NotMergeable(`column ${number}`)
    return number - 1
  }

  /** The output column of that name; of several it is the first when all are the same column. */
  #named(name: string): number | undefined {
    if (this.outputs.some((output) => output.name === undefined)) {
      throw new NotMergeable('ORDER BY a name beside output columns without one')
    }
    const found = this.outputs.flatMap((output, at) => (output.name === name ? [at] : []))
    const [first] = found
    if (first === undefined) return undefined
    if (!found.every((at) => this.#areEqual(this.outputs[first]!, this.outputs[at]!))) {
      throw new NotMergeable('ORDER BY an ambiguous name')
    }
    return first
  }

  #areEqual(a: Output, b: Output): boolean {
    if (a === b || this.#isSame(a.expression, b.expression)) return true
    const [left, right] = [a.target?.item, b.target?.item]
    return left !== undefined && !left.contents.hasLiterals && left.key === right?.key
  }

  #equal(item: ItemFacts): number | undefined {
    const at = this.outputs.findIndex(
      ({ expression, target }) =>
        this.#isSame(expression, item.expression) ||
        (!item.contents.hasLiterals && target?.item.key === item.key),
    )
    return at < 0 ? undefined : at
  }

  #isSame(a: Expression, b: Expression): boolean {
    if (a.kind !== 'column' || b.kind !== 'column') return false
    const { level, places } = this.#context
    const [left, right] = [bindColumn(a.use, level, places), bindColumn(b.use, level, places)]
    return left !== undefined && right !== undefined && sameColumn(left, right)
  }
}

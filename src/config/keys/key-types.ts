/**
 * How one key of the configuration is described: type, unit, default, environment, when it takes effect.
 * Validation, `docs/config.md` and `config show` all come from these descriptions; nothing else knows a key's shape.
 */
import { z } from 'zod'

export type KeyType =
  | 'string'
  | 'path'
  | 'boolean'
  | 'integer'
  | 'number'
  | 'milliseconds'
  | 'seconds'
  | 'bytes'
  | 'enum'
  | 'strings'
  | 'integers'
  | 'value'
  | 'values'
  | 'vectors'
  | 'headers'
  | 'tables'

/** Suffix of the name in code: a duration `idle_timeout` becomes `idleTimeoutMs`. */
export type Unit = 'Ms' | 'Sec' | 'Bytes' | ''

/** When a changed value counts: at RELOAD, for connections made after it, or only after a restart. */
export type TakesEffect = 'reload' | 'new connections' | 'restart'

/** A literal of a mapping: TOML integers, strings, booleans and dates in the text form of the key type. */
export type KeyValue = string

export interface KeyDefinition<T = unknown, U extends Unit = Unit> {
  readonly type: KeyType
  readonly unit: U
  readonly summary: string
  /** undefined: none. Infinity: unlimited. */
  readonly fallback: T
  readonly schema: z.ZodType
  readonly takesEffect: TakesEffect
  readonly values?: readonly string[]
  readonly min?: number
  readonly max?: number
  /** Name of the environment variable when it is not `PGDOG_<KEY>`; null: none. Only keys of [general] and [otel] have one. */
  readonly env?: string | null
  readonly required?: boolean
  readonly secret?: boolean
  readonly alias?: string
  /** Why it is read and then not used: told to whoever writes it. */
  readonly unused?: string
  /** Not one of PgDog's keys. */
  readonly own?: boolean
}

export type KeyTable = Readonly<Record<string, KeyDefinition>>

export type ValueOf<D> = D extends KeyDefinition<infer T, infer _U> ? T : never
type UnitOf<D> = D extends { readonly unit: infer U extends Unit } ? U : ''
type Camel<S extends string> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : S
type OutputName<K extends string, U extends Unit> = K extends `${string}_ms` | `${string}_bytes`
  ? Camel<K>
  : `${Camel<K>}${U}`

/** A table of keys as the plain values that code reads: camelCase names with units. */
export type ValuesOf<T extends KeyTable> = {
  readonly [K in keyof T & string as OutputName<K, UnitOf<T[K]>>]: ValueOf<T[K]>
}

/** The name in code of a key: `idle_timeout` → `idleTimeoutMs`. */
export function outputName(key: string, unit: Unit): string {
  const camel = key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
  return /_(ms|bytes)$/.test(key) ? camel : `${camel}${unit}`
}

type Extra = Partial<
  Pick<
    KeyDefinition,
    'takesEffect' | 'env' | 'required' | 'secret' | 'alias' | 'unused' | 'own' | 'min' | 'max'
  >
>

function define<T, U extends Unit>(
  type: KeyType,
  unit: U,
  fallback: T,
  summary: string,
  schema: z.ZodType,
  extra: Extra & { values?: readonly string[] } = {},
): KeyDefinition<T, U> {
  return { type, unit, fallback, summary, schema, takesEffect: 'reload', ...extra }
}

const whole = (min: number, max: number): z.ZodType => z.number().int().min(min).max(max)

type Optional<F> = F extends undefined ? undefined : never

/** Text. A fallback of undefined makes it optional. */
export const string = <F extends string | undefined>(fallback: F, summary: string, extra?: Extra) =>
  define<string | Optional<F>, ''>('string', '', fallback as never, summary, z.string(), extra)

export const path = (summary: string, extra?: Extra) =>
  define<string | undefined, ''>('path', '', undefined, summary, z.string().min(1), extra)

export const boolean = <F extends boolean | undefined>(
  fallback: F,
  summary: string,
  extra?: Extra,
) =>
  define<boolean | Optional<F>, ''>('boolean', '', fallback as never, summary, z.boolean(), extra)

const maxInteger = Number.MAX_SAFE_INTEGER

export const integer = <F extends number | undefined>(
  fallback: F,
  summary: string,
  extra: Extra = {},
) =>
  define<number | Optional<F>, ''>(
    'integer',
    '',
    fallback as never,
    summary,
    whole(extra.min ?? 0, extra.max ?? maxInteger),
    extra,
  )

export const fraction = <F extends number | undefined>(
  fallback: F,
  summary: string,
  extra?: Extra,
) =>
  define<number | Optional<F>, ''>(
    'number',
    '',
    fallback as never,
    summary,
    z.number().min(0).max(1),
    { min: 0, max: 1, ...extra },
  )

export const duration = <F extends number | undefined>(
  fallback: F,
  summary: string,
  extra: Extra = {},
) =>
  define<number | Optional<F>, 'Ms'>(
    'milliseconds',
    'Ms',
    fallback as never,
    summary,
    whole(extra.min ?? 0, maxInteger),
    extra,
  )

export const seconds = (fallback: number, summary: string, extra?: Extra) =>
  define<number, 'Sec'>('seconds', 'Sec', fallback, summary, whole(0, maxInteger), extra)

export const bytes = <F extends number | undefined>(
  fallback: F,
  summary: string,
  extra: Extra = {},
) =>
  define<number | Optional<F>, 'Bytes'>(
    'bytes',
    'Bytes',
    fallback as never,
    summary,
    whole(extra.min ?? 0, maxInteger),
    extra,
  )

export const oneOf = <const V extends string, F extends V | undefined>(
  values: readonly V[],
  fallback: F,
  summary: string,
  extra?: Extra,
) =>
  define<V | Optional<F>, ''>('enum', '', fallback as never, summary, z.enum(values), {
    ...extra,
    values,
  })

export const strings = (summary: string, extra?: Extra) =>
  define<readonly string[], ''>('strings', '', [], summary, z.array(z.string()), extra)

export const integers = (summary: string, extra?: Extra) =>
  define<readonly number[] | undefined, ''>(
    'integers',
    '',
    undefined,
    summary,
    z.array(whole(0, 65_535)),
    extra,
  )

const literal = z.union([z.string(), z.number(), z.bigint(), z.boolean(), z.date()])

/** One value of a sharding key, as text. */
export const value = (summary: string, extra?: Extra) =>
  define<KeyValue | undefined, ''>('value', '', undefined, summary, literal, extra)

export const valueList = (summary: string, extra?: Extra) =>
  define<readonly KeyValue[] | undefined, ''>(
    'values',
    '',
    undefined,
    summary,
    z.array(literal),
    extra,
  )

export const vectors = (summary: string, extra?: Extra) =>
  define<readonly (readonly number[])[], ''>(
    'vectors',
    '',
    [],
    summary,
    z.array(z.array(z.number())),
    extra,
  )

export const headers = (summary: string, extra?: Extra) =>
  define<Readonly<Record<string, string>>, ''>(
    'headers',
    '',
    {},
    summary,
    z.record(z.string(), z.string()),
    extra,
  )

/** A list of tables below this one; its keys are a section of their own (`sharded_tables.mapping`). */
export const tables = (summary: string, extra?: Extra) =>
  define<readonly unknown[], ''>('tables', '', [], summary, z.array(z.any()), extra)

export const unlimited = Number.POSITIVE_INFINITY

const nouns: Record<KeyType, string> = {
  string: 'text in quotes',
  path: 'a path in quotes',
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  milliseconds: 'a whole number of milliseconds',
  seconds: 'a whole number of seconds',
  bytes: 'a whole number of bytes',
  enum: 'one of',
  strings: 'a list of texts',
  integers: 'a list of whole numbers',
  value: 'a value in quotes or a whole number',
  values: 'a list of values',
  vectors: 'a list of lists of numbers',
  headers: 'a table of texts',
  tables: 'a list of tables',
}

/** "a whole number of milliseconds", "one of a, b, c". */
export function describeType(definition: KeyDefinition): string {
  const noun = nouns[definition.type]
  if (definition.values) return `${noun} ${definition.values.join(', ')}`
  const { min, max } = definition
  if (min === undefined && max === undefined) return noun
  if (max === undefined) return `${noun} from ${min} up`
  return `${noun} from ${min ?? 0} to ${max}`
}

/**
 * A small assembler of WebAssembly: expressions as nested calls, locals and blocks by name. Only what the row splitter uses.
 * Pure; the encoding is that of the WebAssembly core specification, §5 (SIMD among it).
 */

/** A byte, or a name whose number is known when the function is put together. */
type Item = number | Named
type Named =
  | { readonly kind: 'local'; readonly name: string }
  | { readonly kind: 'open'; readonly name: string; readonly opcode: number }
  | { readonly kind: 'close' }
  | { readonly kind: 'branch'; readonly name: string }
export type Code = readonly Item[]

const types = { i32: 0x7f, i64: 0x7e, v128: 0x7b } as const
type ValueType = keyof typeof types

/** LEB128, signed: as constants are written. */
function signed(value: bigint): number[] {
  const bytes: number[] = []
  for (let rest = value; ; ) {
    const low = Number(rest & 0x7fn)
    rest >>= 7n
    const isLast = (rest === 0n && (low & 0x40) === 0) || (rest === -1n && (low & 0x40) !== 0)
    bytes.push(isLast ? low : low | 0x80)
    if (isLast) return bytes
  }
}

/** LEB128, unsigned: as sizes, indexes and offsets are written. */
function unsigned(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; ) {
    const low = rest % 0x80
    rest = Math.floor(rest / 0x80)
    bytes.push(rest === 0 ? low : low | 0x80)
    if (rest === 0) return bytes
  }
}

export const i32 = (value: number): Code => [0x41, ...signed(BigInt(value | 0))]
export const i64 = (value: bigint): Code => [0x42, ...signed(BigInt.asIntN(64, value))]
export const get = (name: string): Code => [0x20, { kind: 'local', name }]
export const set = (name: string, value: Code): Code => [...value, 0x21, { kind: 'local', name }]
/** Sets a local and is its value. */
export const tee = (name: string, value: Code): Code => [...value, 0x22, { kind: 'local', name }]

const operation =
  (...opcode: number[]) =>
  (...operands: readonly Code[]): Code => [...operands.flat(), ...opcode]

export const i32Op = {
  isZero: operation(0x45),
  equal: operation(0x46),
  differ: operation(0x47),
  less: operation(0x48),
  below: operation(0x49),
  above: operation(0x4b),
  atLeast: operation(0x4f),
  trailingZeros: operation(0x68),
  add: operation(0x6a),
  sub: operation(0x6b),
  and: operation(0x71),
  or: operation(0x72),
  xor: operation(0x73),
  shiftLeft: operation(0x74),
  shiftRightSigned: operation(0x75),
  rotateLeft: operation(0x77),
  ofI64: operation(0xa7),
}

export const i64Op = {
  above: operation(0x56),
  add: operation(0x7c),
  sub: operation(0x7d),
  mul: operation(0x7e),
  remainder: operation(0x82),
  or: operation(0x84),
  shiftLeft: operation(0x86),
  shiftRightSigned: operation(0x87),
  ofUnsigned: operation(0xad),
}

export const v128Op = {
  splat: operation(0xfd, 0x0f),
  equal: operation(0xfd, 0x23),
  or: operation(0xfd, 0x50),
  bitmask: operation(0xfd, 0x64),
}

/** Memory at the operand's address and `offset`; nothing need be aligned. */
const access =
  (...opcode: number[]) =>
  (offset: number, ...operands: readonly Code[]): Code => [
    ...operands.flat(),
    ...opcode,
    0,
    ...unsigned(offset),
  ]

export const load = {
  i32: access(0x28),
  i64: access(0x29),
  byte: access(0x2d),
  twoBytes: access(0x2f),
  v128: access(0xfd, 0x00),
}

/** Address, then value. */
export const store = { i32: access(0x36), byte: access(0x3a), v128: access(0xfd, 0x0b) }

/** A branch to a block leaves it, one to a loop begins it anew. */
export const block = (name: string, ...body: readonly Code[]): Code => [
  { kind: 'open', name, opcode: 0x02 },
  ...body.flat(),
  { kind: 'close' },
]
export const loop = (name: string, ...body: readonly Code[]): Code => [
  { kind: 'open', name, opcode: 0x03 },
  ...body.flat(),
  { kind: 'close' },
]
export const branch = (name: string): Code => [0x0c, { kind: 'branch', name }]
export const branchIf = (name: string, condition: Code): Code => [
  ...condition,
  0x0d,
  { kind: 'branch', name },
]

export interface FunctionText {
  readonly name: string
  /** All are i32; so is the result: the value that the body leaves. */
  readonly parameters: readonly string[]
  readonly locals: Readonly<Partial<Record<ValueType, readonly string[]>>>
  readonly body: readonly Code[]
}

const NO_VALUE = 0x40
const END = 0x0b

/** How many blocks lie between here and the one of that name. */
function depthOf(open: readonly string[], name: string): number | undefined {
  const index = open.lastIndexOf(name)
  return index < 0 ? undefined : open.length - 1 - index
}

function encodeBody(text: FunctionText): number[] {
  const groups = Object.entries(text.locals) as [ValueType, readonly string[]][]
  const names = [...text.parameters, ...groups.flatMap(([, group]) => group)]
  const indexes = new Map(names.map((name, index) => [name, index]))
  const open: string[] = []
  const one = (item: Item): number[] => {
    if (typeof item === 'number') return [item]
    if (item.kind === 'close') {
      open.pop()
      return [END]
    }
    if (item.kind === 'open') {
      open.push(item.name)
      return [item.opcode, NO_VALUE]
    }
    const number = item.kind === 'local' ? indexes.get(item.name) : depthOf(open, item.name)
    if (number === undefined) throw new TypeError(`no ${item.kind} ${item.name}`)
    return unsigned(number)
  }
  const declared = groups.flatMap(([type, group]) => [...unsigned(group.length), types[type]])
  const code = text.body.flat().flatMap(one)
  return sized([...unsigned(groups.length), ...declared, ...code, END])
}

const sized = (bytes: readonly number[]): number[] => [...unsigned(bytes.length), ...bytes]

const listed = (entries: readonly (readonly number[])[]): number[] =>
  sized([...unsigned(entries.length), ...entries.flat()])

const named = (name: string): number[] => sized([...Buffer.from(name)])

/** A module that imports its memory as `host.memory` and exports the functions. */
export function assemble(functions: readonly FunctionText[], pages: number): Buffer {
  const signatures = functions.map(({ parameters }) => [
    0x60,
    ...sized(parameters.map(() => types.i32)),
    ...sized([types.i32]),
  ])
  const memory = [...named('host'), ...named('memory'), 0x02, 0x00, ...unsigned(pages)]
  return Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...[0x01, ...listed(signatures)],
    ...[0x02, ...listed([memory])],
    ...[0x03, ...listed(functions.map((_, index) => unsigned(index)))],
    ...[
      0x07,
      ...listed(functions.map(({ name }, index) => [...named(name), 0x00, ...unsigned(index)])),
    ],
    ...[0x0a, ...listed(functions.map(encodeBody))],
  ])
}

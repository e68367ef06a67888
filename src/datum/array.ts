/** Elements of a one-dimensional array in text or binary form. Follows `array_in` and `array_recv`; deeper arrays are not read. */

/** One quoted or bare element; NULL unquoted is null. */
const element =
  /[ \t-\r]*(?:"((?:[^"\\]|\\[\s\S])*)"|((?:[^",{}\\ \t-\r]|\\[\s\S])(?:(?:[^",{}\\]|\\[\s\S])*(?:[^",{}\\ \t-\r]|\\[\s\S]))?))[ \t-\r]*([,}])/y

/** `{1,2,NULL}`; undefined for what is not a plain one-dimensional array. */
export function readArrayText(text: string): (string | null)[] | undefined {
  // Other blanks of Unicode are letters to PostgreSQL.
  const trimmed = text.replace(/^[ \t-\r]+|[ \t-\r]+$/g, '')
  if (/^\{[ \t-\r]*\}$/.test(trimmed)) return []
  if (!trimmed.startsWith('{')) return undefined
  const values: (string | null)[] = []
  element.lastIndex = 1
  for (;;) {
    const match = element.exec(trimmed)
    if (!match) return undefined
    const [, quoted, bare, mark] = match
    if (quoted !== undefined) values.push(quoted.replace(/\\([\s\S])/g, '$1'))
    else values.push(/^null$/i.test(bare!) ? null : bare!.replace(/\\([\s\S])/g, '$1'))
    if (mark === '}') return element.lastIndex === trimmed.length ? values : undefined
    element.lastIndex = match.index + match[0].length
  }
}

export interface BinaryArray {
  readonly elementType: number
  /** Byte ranges in the buffer given; null for NULL. */
  readonly elements: readonly ({ readonly start: number; readonly end: number } | null)[]
}

/** Int32 dimensions · Int32 flags · Int32 element type · (Int32 size · Int32 lower bound)… · (Int32 length · bytes)… */
export function readArrayBinary(bytes: Buffer, from: number, to: number): BinaryArray | undefined {
  if (to - from < 12) return undefined
  const dimensions = bytes.readInt32BE(from)
  const elementType = bytes.readUInt32BE(from + 8)
  if (dimensions === 0) return { elementType, elements: [] }
  if (dimensions !== 1 || to - from < 20) return undefined
  const count = bytes.readInt32BE(from + 12)
  const elements: ({ start: number; end: number } | null)[] = []
  let at = from + 20
  for (let i = 0; i < count; i++) {
    if (at + 4 > to) return undefined
    const length = bytes.readInt32BE(at)
    at += 4
    if (length < 0) {
      elements.push(null)
      continue
    }
    if (at + length > to) return undefined
    elements.push({ start: at, end: at + length })
    at += length
  }
  return at === to ? { elementType, elements } : undefined
}

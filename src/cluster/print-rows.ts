/** Rows as psql's aligned format shows them. Pure text in, text out. */

export interface Column {
  name: string
  /** Numbers stand to the right. */
  isNumeric: boolean
}

/** int2 int4 int8 oid float4 float8 numeric money */
const numericTypes = new Set([20, 21, 23, 26, 700, 701, 790, 1700])

export const columnOf = (field: { name: string; dataTypeID: number }): Column => ({
  name: field.name,
  isNumeric: numericTypes.has(field.dataTypeID),
})

/** Cells of a terminal that a text takes: wide East Asian characters two, combining ones none. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of text) {
    const code = character.codePointAt(0)!
    if (/\p{Mn}|\p{Me}|\p{Cf}/u.test(character)) continue
    const isWide =
      (code >= 0x1100 && code <= 0x115f) ||
      (code >= 0x2e80 && code <= 0xa4cf) ||
      (code >= 0xac00 && code <= 0xd7a3) ||
      (code >= 0xf900 && code <= 0xfaff) ||
      (code >= 0xfe30 && code <= 0xfe6f) ||
      (code >= 0xff00 && code <= 0xff60) ||
      (code >= 0x1f300 && code <= 0x1faff) ||
      (code >= 0x20000 && code <= 0x3fffd)
    width += isWide ? 2 : 1
  }
  return width
}

const pad = (text: string, width: number, right: boolean): string => {
  const blanks = ' '.repeat(Math.max(0, width - widthOf(text)))
  return right ? blanks + text : text + blanks
}

const centred = (text: string, width: number): string => {
  const left = Math.floor((width - widthOf(text)) / 2)
  return pad(' '.repeat(Math.max(0, left)) + text, width, false)
}

/** Control characters would move the cursor; psql shows them escaped, and breaks lines with a "+". */
const printable = (value: string): string[] =>
  value
    .replace(/\r/g, '\\r')
    .replace(/\t/g, '        ')
    .split('\n')
    .map((line) =>
      line.replace(/\p{Cc}/gu, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`),
    )

/** A table with a header, a rule, the rows and "(n rows)". NULL is empty, as in psql. */
export function printRows(
  columns: readonly Column[],
  rows: readonly (readonly (string | null)[])[],
): string {
  const cells = rows.map((row) => row.map((value) => printable(value ?? '')))
  const widths = columns.map(({ name }, index) =>
    cells.reduce((widest, row) => Math.max(widest, ...row[index]!.map(widthOf)), widthOf(name)),
  )
  const lines = [
    columns
      .map(({ name }, index) => ` ${centred(name, widths[index]!)} `)
      .join('|')
      .trimEnd(),
    widths.map((width) => '-'.repeat(width + 2)).join('+'),
  ]
  for (const row of cells) {
    const height = Math.max(1, ...row.map((lines) => lines.length))
    for (let line = 0; line < height; line++) lines.push(rowLine(row, line, widths, columns))
  }
  return `${lines.join('\n')}\n(${rows.length} row${rows.length === 1 ? '' : 's'})\n`
}

function rowLine(
  row: string[][],
  line: number,
  widths: number[],
  columns: readonly Column[],
): string {
  const texts = row.map((lines, index) => {
    const more = line < lines.length - 1 ? '+' : ' '
    return ` ${pad(lines[line] ?? '', widths[index]!, columns[index]!.isNumeric)}${more}`
  })
  return texts.join('|').trimEnd()
}

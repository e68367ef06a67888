/** HTML text in which every value is escaped unless it is HTML already. Pure. */

/** Text that may stand in a page as it is. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toString(): string {
    return this.text
  }
}

export type HtmlValue = Html | string | number | undefined | readonly HtmlValue[]

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

function textOf(value: HtmlValue): string {
  if (value === undefined) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'string' || typeof value === 'number') return escaped(String(value))
  return value.map(textOf).join('')
}

/** A template whose values are escaped: text, numbers, other HTML, lists of these. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(
    parts.map((part, i) => part + (i < values.length ? textOf(values[i]) : '')).join(''),
  )
}

/** Data inside a script element: nothing in it can end the element or begin a comment. */
export const scriptJson = (data: unknown): Html =>
  new Html(
    JSON.stringify(data).replace(
      /[<>&\u2028\u2029]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  )

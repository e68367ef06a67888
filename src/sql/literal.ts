/** The value of a literal token: quotes, escapes and continuations taken away, as scan.l does. */

const simpleEscapes: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** Where the next piece of a continued string begins, behind space and comments of one line. */
function nextPiece(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== "'") {
    if (text.startsWith('--', at)) while (at < text.length && !/[\n\r]/.test(text[at]!)) at++
    else at++
  }
  return at + 1
}

/** Pieces of a string split by newline and quote, joined; `''` made one. */
function joinPieces(text: string): string {
  let out = ''
  let at = 0
  while (at < text.length) {
    const close = text.indexOf("'", at)
    if (close < 0) return out + text.slice(at)
    out += text.slice(at, close)
    if (text[close + 1] === "'") {
      out += "'"
      at = close + 2
    } else at = nextPiece(text, close + 1)
  }
  return out
}

const escapeForm =
  /\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([\s\S]))/g

/** E'' strings. Bytes above 127 from \ooo or \xhh are read as UTF-8 together with their neighbours. */
function resolveEscapes(text: string): string {
  // Protect escaped quotes from the piece joiner: the quote after a backslash is not an end.
  const pieces = splitEscaped(text)
  const bytes: Buffer[] = []
  let last = 0
  for (const match of pieces.matchAll(escapeForm)) {
    bytes.push(Buffer.from(pieces.slice(last, match.index)))
    bytes.push(escapedBytes(match))
    last = match.index + match[0].length
  }
  bytes.push(Buffer.from(pieces.slice(last)))
  return Buffer.concat(bytes).toString('utf8')
}

function escapedBytes(match: RegExpMatchArray): Buffer {
  const [, octal, hex, short, long, other] = match
  if (octal !== undefined) return Buffer.from([Number.parseInt(octal, 8) & 255])
  if (hex !== undefined) return Buffer.from([Number.parseInt(hex, 16)])
  const unicode = short ?? long
  if (unicode !== undefined) {
    const code = Number.parseInt(unicode, 16)
    return Buffer.from(code <= 0x10ffff ? String.fromCodePoint(code) : '')
  }
  return Buffer.from(simpleEscapes[other!] ?? other!)
}

/** As `joinPieces`, but a backslash hides the character behind it. */
function splitEscaped(text: string): string {
  let out = ''
  let at = 0
  while (at < text.length) {
    const ch = text[at]!
    if (ch === '\\') {
      out += text.slice(at, at + 2)
      at += 2
    } else if (ch === "'" && text[at + 1] === "'") {
      out += "'"
      at += 2
    } else if (ch === "'") {
      at = nextPiece(text, at + 1)
    } else {
      out += ch
      at++
    }
  }
  return out
}

/** Value of the string token sql[start, end); undefined for U&''. */
export function stringValue(
  sql: string,
  start: number,
  end: number,
  standard = true,
): string | undefined {
  const first = sql[start]!
  if (first === '$') {
    const mark = sql.indexOf('$', start + 1) + 1 - start
    return sql.slice(start + mark, end - mark)
  }
  if (first === "'") {
    const body = sql.slice(start + 1, end - 1)
    if (!standard && body.includes('\\')) return resolveEscapes(body)
    return body.includes("'") ? joinPieces(body) : body
  }
  if (first === 'e' || first === 'E') return resolveEscapes(sql.slice(start + 2, end - 1))
  // What a U&'' string means depends on a UESCAPE behind it: not read here.
  if (first === 'u' || first === 'U') return undefined
  return joinPieces(sql.slice(start + 2, end - 1))
}

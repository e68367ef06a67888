/** Passwords from the text of a .pgpass file. Reads no file itself. Source followed: passwordFromFile in fe-connect.c. */

export interface PasswordQuery {
  readonly host: string
  readonly port: string
  readonly database: string
  readonly user: string
}

/** Cuts a line at its unescaped colons; backslash takes the next character as it is. */
function splitLine(line: string): string[] {
  const fields = ['']
  for (let i = 0; i < line.length; i++) {
    const char = line[i] as string
    const last = fields.length - 1
    if (char === ':' && fields.length < 5) fields.push('')
    else if (char === '\\' && i + 1 < line.length) fields[last] += line[++i] as string
    else fields[last] += char
  }
  return fields
}

/** "*" alone matches all, but an escaped star is a star: looked at before unescaping. */
function matches(line: string, query: PasswordQuery): string | undefined {
  const raw = line.match(
    /^((?:[^:\\]|\\.)*):((?:[^:\\]|\\.)*):((?:[^:\\]|\\.)*):((?:[^:\\]|\\.)*):/,
  )
  const fields = splitLine(line)
  if (raw === null || fields.length < 5) return undefined
  const wanted = [query.host, query.port, query.database, query.user]
  const fits = wanted.every((value, i) => raw[i + 1] === '*' || fields[i] === value)
  return fits ? fields[4] : undefined
}

/** The password of the first line that fits; undefined when none does. */
export function passwordFromText(text: string, query: PasswordQuery): string | undefined {
  for (const line of text.split(/\r?\n/)) {
    if (line === '' || line.startsWith('#')) continue
    const password = matches(line, query)
    if (password !== undefined && password !== '') return password
  }
  return undefined
}

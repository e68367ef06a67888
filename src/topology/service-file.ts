/** One section of a pg_service.conf, from its text. Source followed: parseServiceFile in fe-connect.c. */
import { type ConninfoValues, conninfoError, storeValue } from './conninfo-options.js'

function storeLine(values: ConninfoValues, line: string, where: string): void {
  const equals = line.indexOf('=')
  if (equals < 0) throw conninfoError(`syntax error in service file ${where}`)
  const keyword = line.slice(0, equals)
  if (keyword === 'service' || keyword === 'servicefile')
    throw conninfoError(`nested "${keyword}" specifications not supported in service file ${where}`)
  if (Object.hasOwn(values, keyword)) return
  if (!storeValue(values, keyword, line.slice(equals + 1)))
    throw conninfoError(`syntax error in service file ${where}`)
}

/** Values of `[service]`; undefined when the file has no such section. The first of two equal keywords wins. */
export function serviceValues(
  text: string,
  service: string,
  path: string,
): ConninfoValues | undefined {
  let found: ConninfoValues | undefined
  for (const [index, rawLine] of text.split('\n').entries()) {
    const line = rawLine.trim()
    if (line === '' || line.startsWith('#')) continue
    if (line.startsWith('[')) {
      if (found !== undefined) return found
      if (line.slice(1, -1) === service && line.endsWith(']')) found = {}
    } else if (found !== undefined) storeLine(found, line, `"${path}", line ${index + 1}`)
  }
  return found
}

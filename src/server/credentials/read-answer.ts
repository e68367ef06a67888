/** What services that give out credentials answer: JSON, of which a few fields are wanted. Failures never quote the answer. */
import { readFileSync } from 'node:fs'
import { type HttpRequest, httpRequest } from '../../net/http-request.js'

export type Fields = Readonly<Record<string, unknown>>

const LIMIT_MS = 5000

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The answer as JSON. `what` says in a failure what was asked. @throws Error, NET_HTTP_FAILED */
export async function askJson(
  what: string,
  request: Omit<HttpRequest, 'timeoutMs'>,
): Promise<Fields> {
  return fieldsFrom(what, await askText(what, request))
}

/** @throws Error */
export async function askText(
  what: string,
  request: Omit<HttpRequest, 'timeoutMs'>,
): Promise<string> {
  const { status, text } = await httpRequest({ ...request, timeoutMs: LIMIT_MS })
  if (status < 200 || status > 299) throw new Error(`${what} was answered with status ${status}`)
  return text
}

/** Without the parser's error, which quotes the text. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function fieldsFrom(what: string, text: string): Fields {
  const parsed = parseJson(text)
  if (!isFields(parsed)) throw new Error(`${what} was answered with something else than fields`)
  return parsed
}

/** A field that holds fields. @throws Error */
export function part(what: string, fields: Fields, name: string): Fields {
  const value = fields[name]
  if (!isFields(value)) throw new Error(`${what} was answered without "${name}"`)
  return value
}

/** @throws Error */
export function word(what: string, fields: Fields, name: string): string {
  const value = fields[name]
  if (typeof value !== 'string' || value === '') {
    throw new Error(`${what} was answered without "${name}"`)
  }
  return value
}

/** A number, also when it is written as text; undefined when it is none. */
export function count(fields: Fields, name: string): number | undefined {
  const value = Number(fields[name])
  return Number.isFinite(value) && value > 0 ? value : undefined
}

/** A small file that holds a token. @throws Error */
export function readToken(what: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    throw new Error(`${what} could not be read from "${path}": ${code}`, { cause })
  }
}

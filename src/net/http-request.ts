/** One HTTP request and its whole answer, for services that give out credentials. Nothing of either is logged. */
import { engineError } from '../errors/engine-error.js'

export interface HttpRequest {
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs: number
}

export interface HttpAnswer {
  readonly status: number
  readonly text: string
}

/** More is no answer of such a service. */
const MAX_ANSWER_BYTES = 1_000_000

/** Follows no redirect: it would carry secrets elsewhere. @throws NET_HTTP_FAILED, which names host and reason only */
export async function httpRequest(request: HttpRequest): Promise<HttpAnswer> {
  const { method = 'GET', url, headers = {}, body, timeoutMs } = request
  try {
    const answer = await fetch(url, {
      method,
      headers: { ...headers },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
      ...(body === undefined ? {} : { body }),
    })
    return { status: answer.status, text: await textOf(answer) }
  } catch (error) {
    throw engineError('NET_HTTP_FAILED', { host: hostOf(url), reason: reasonOf(error, timeoutMs) })
  }
}

async function textOf(answer: Response): Promise<string> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of answer.body ?? []) {
    length += part.length
    if (length > MAX_ANSWER_BYTES) throw new Error('the answer is too long')
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'a malformed address'
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (!(error instanceof Error)) return 'unknown'
  if (error.name === 'TimeoutError') return `no answer within ${timeoutMs} ms`
  const { code } = (error.cause ?? {}) as { code?: string }
  return code ?? error.message
}

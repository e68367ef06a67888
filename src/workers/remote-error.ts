/** Errors on their way from one process to another: plain fields, and the same error again at the other end. */
import { catalogue } from '../errors/catalogue.js'
import { EngineError, toEngineError } from '../errors/engine-error.js'

export type RemoteError = Pick<
  EngineError,
  'code' | 'message' | 'detail' | 'hint' | 'position' | 'where' | 'retry'
>

export function toRemote(error: unknown): RemoteError {
  const { code, message, detail, hint, position, where, retry } = toEngineError(error)
  return { code, message, detail, hint, position, where, retry }
}

export function fromRemote({ code, message, ...rest }: RemoteError): EngineError {
  const extras = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
  return new EngineError(code, message, catalogue[code], extras)
}

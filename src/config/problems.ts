/** Collects everything that is wrong with a configuration, so that its user sees all of it at once. */
import { type EngineError, engineError } from '../errors/engine-error.js'

/** Where something was written: a file and line, or an environment variable or flag. */
export interface Place {
  readonly file: string
  readonly line?: number
}

export function showPlace(place: Place): string {
  return place.line === undefined ? place.file : `${place.file}:${place.line}`
}

interface Remark {
  readonly place: Place | undefined
  readonly message: string
}

export class Problems {
  readonly #errors: Remark[] = []
  readonly #warnings: Remark[] = []

  error(place: Place | undefined, message: string): void {
    this.#errors.push({ place, message })
  }

  warn(place: Place | undefined, message: string): void {
    this.#warnings.push({ place, message })
  }

  get failed(): boolean {
    return this.#errors.length > 0
  }

  get warnings(): readonly string[] {
    return sorted(this.#warnings)
  }

  get errors(): readonly string[] {
    return sorted(this.#errors)
  }

  /** CONFIG_INVALID with every problem in its detail. */
  toError(): EngineError {
    const lines = this.errors
    const count = lines.length === 1 ? '1 problem' : `${lines.length} problems`
    return engineError('CONFIG_INVALID', { count }, { detail: lines.join('\n') })
  }
}

/** By file in the order of their first remark, then by line. */
function sorted(remarks: readonly Remark[]): string[] {
  const files = [...new Set(remarks.map((remark) => remark.place?.file ?? ''))]
  const rank = (remark: Remark) => files.indexOf(remark.place?.file ?? '')
  const ordered = [...remarks].sort(
    (a, b) => rank(a) - rank(b) || (a.place?.line ?? 0) - (b.place?.line ?? 0),
  )
  const lines = ordered.map(({ place, message }) =>
    place === undefined ? message : `${showPlace(place)}: ${message}`,
  )
  return [...new Set(lines)]
}

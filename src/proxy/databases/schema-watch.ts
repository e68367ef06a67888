/**
 * Notices changes of a schema that were made past the proxy, while anybody needs to know: who asks makes it look again
 * after some seconds, and what was seen too long ago does not count. An idle database is not asked.
 */
import type { Clock } from '../../base/clock.js'

/** Looks are this far apart. */
const LOOK_MS = 5000
/** Older than this the schema may be another. */
const STALE_MS = 10_000

const tally = (table: string, where = 'oid >= 16384'): string =>
  `(SELECT pg_catalog.count(*) || ':' || COALESCE(pg_catalog.sum(t.xmin::text::bigint), 0) FROM pg_catalog.${table} t WHERE ${where})`

/** Another text when anything that routing or pipelining goes by was made, changed or dropped. Temporary tables do not count. */
export const fingerprintSql = fingerprintWith("relpersistence <> 't'")
/** The same, whatever is done to sequences: a cutover sets them, and no plan goes by that. */
export const fingerprintBesidesSequences = fingerprintWith(
  "relpersistence <> 't' AND relkind <> 'S'",
)

function fingerprintWith(relations: string): string {
  return `SELECT pg_catalog.concat_ws(',', ${[
    tally('pg_class', `oid >= 16384 AND ${relations}`),
    tally('pg_type', "typtype IN ('d', 'e', 'r')"),
    ...[
      'pg_proc',
      'pg_rewrite',
      'pg_policy',
      'pg_operator',
      'pg_cast',
      'pg_amproc',
      'pg_trigger',
    ].map((table) => tally(table)),
  ].join(', ')})`
}

export interface SchemaWatchOptions {
  readonly clock: Clock
  /** The fingerprint now. */
  readonly look: () => Promise<string>
  readonly changed: () => void
}

export class SchemaWatch {
  readonly #options: SchemaWatchOptions
  #known: string | undefined
  #lookedMs = Number.NEGATIVE_INFINITY
  #isLooking = false

  constructor(options: SchemaWatchOptions) {
    this.#options = options
  }

  /** What is known was read when the fingerprint was this. */
  note(fingerprint: string): void {
    this.#known = fingerprint
    this.#lookedMs = this.#options.clock.monotonicMs()
  }

  /** True while what is known was true some seconds ago. */
  get isFresh(): boolean {
    const ageMs = this.#options.clock.monotonicMs() - this.#lookedMs
    if (ageMs >= LOOK_MS && !this.#isLooking) void this.#look()
    return ageMs < STALE_MS
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    const { clock, look, changed } = this.#options
    try {
      const seen = await look()
      if (seen === this.#known) this.#lookedMs = clock.monotonicMs()
      else changed()
    } catch {
      // the pools say why; until a look succeeds nothing counts as known
    } finally {
      this.#isLooking = false
    }
  }
}

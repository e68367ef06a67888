/** One line of the catalogue. */
export interface CatalogueEntry {
  /** A real SQLSTATE of PostgreSQL's errcodes.txt. */
  sqlstate: string
  severity?: 'ERROR' | 'FATAL'
  /** Lower case, no full stop; `{name}` is filled in. */
  message: string
  /** What to do, as an instruction. */
  hint?: string
  retry?: 'safe' | 'unsafe' | 'unknown'
  /** Exit code of a command that ends with it; 1 when absent. */
  exit?: number
}

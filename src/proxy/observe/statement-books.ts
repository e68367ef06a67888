/** What was seen of the statements of each database; it outlives reloads and changes of the schema. */
import type { StatementView } from '../../admin/proxy-view.js'
import { StatementBook } from '../../metrics/statement-book.js'

export class StatementBooks {
  readonly #known = new Map<string, StatementBook>()

  of(database: string): StatementBook {
    const book = this.#known.get(database) ?? new StatementBook()
    this.#known.set(database, book)
    return book
  }

  rows(): StatementView[] {
    return [...this.#known].flatMap(([database, book]) =>
      book.rows().map((row) => ({ database, ...row })),
    )
  }
}

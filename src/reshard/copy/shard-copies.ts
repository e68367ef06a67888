/** The COPY of one part into the target shards that get rows of it, each in a transaction of its own. */
import { adminQuery } from '../../pg/admin-query.js'
import { type CopyIn, openCopyIn } from '../../pg/copy-in.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteName } from '../../pg/sql-names.js'
import { type CopiedPart, copiedSql } from '../journal/copied-parts.js'
import type { MoveTable } from '../move-table.js'

export class ShardCopies {
  readonly #targets: readonly HostClient[]
  readonly #sql: string
  readonly #copies = new Map<number, Promise<CopyIn>>()
  #pending: Promise<unknown>[] = []

  constructor(targets: readonly HostClient[], table: MoveTable, binary: boolean) {
    const columns = table.columns.map((column) => quoteName(column.name)).join(', ')
    this.#targets = targets
    this.#sql = `COPY ${table.targetName} (${columns}) FROM STDIN (FORMAT ${binary ? 'binary' : 'text'})`
  }

  take(shard: number, bytes: Buffer): void {
    let copy = this.#copies.get(shard)
    if (!copy) {
      copy = this.#open(shard)
      copy.catch(() => undefined)
      this.#copies.set(shard, copy)
    }
    const written = copy.then((open) => open.write(bytes))
    written.catch(() => undefined)
    this.#pending.push(written)
  }

  /** Resolves when the targets take more; rejects with the first failure. */
  drained(): Promise<void> | undefined {
    if (this.#pending.length === 0) return undefined
    const pending = this.#pending
    this.#pending = []
    return Promise.all(pending).then(() => undefined)
  }

  /** Ends all COPYs; the rows that each target counted. Nothing is committed yet. */
  async finish(): Promise<Map<number, number>> {
    const counts = new Map<number, number>()
    await Promise.all(
      [...this.#copies].map(async ([shard, opening]) => {
        counts.set(shard, await (await opening).finish())
      }),
    )
    return counts
  }

  /** Commits on the first target, then on the others, each with the checkpoint, also where no row of the part went. */
  async commit(
    run: string,
    part: CopiedPart,
    isWanted: readonly boolean[],
    onFirst: () => Promise<void> | undefined,
  ): Promise<void> {
    const record = copiedSql(run, part)
    const commit = async (shard: number): Promise<void> => {
      const begin = this.#copies.has(shard) ? '' : 'BEGIN; '
      await adminQuery(this.#targets[shard] as HostClient, `${begin}${record}; COMMIT`)
    }
    const [first, ...others] = [...this.#targets.keys()].filter((shard) => isWanted[shard])
    if (first === undefined) return
    await commit(first)
    await onFirst()
    for (const end of await Promise.allSettled(others.map(commit))) {
      if (end.status === 'rejected') throw end.reason
    }
  }

  async abort(): Promise<void> {
    for (const opening of this.#copies.values()) {
      const copy = await opening.catch(() => undefined)
      await copy?.fail('another shard failed')
    }
    for (const client of this.#targets) await client.query('ROLLBACK').catch(() => undefined)
  }

  async #open(shard: number): Promise<CopyIn> {
    const client = this.#targets[shard] as HostClient
    await adminQuery(client, 'BEGIN')
    return openCopyIn(client, this.#sql)
  }
}

/** What a move tells while it works, as bars and notes. */
import type { BaseCommand } from './base-command.js'

type Board = ReturnType<BaseCommand['progress']>

export function stepsOnBoard(board: Board): {
  step(text: string): void
  copied(table: string, bytes: number): void
  verified(table: { readonly name: string; readonly same: boolean }): void
} {
  const bars = new Map<string, ReturnType<Board['bar']>>()
  return {
    step: (text) => {
      for (const bar of bars.values()) bar.finish()
      bars.clear()
      board.note(text)
    },
    copied: (table, bytes) => {
      let bar = bars.get(table)
      if (!bar) {
        // The size in pages says little of the bytes that COPY sends: no percentage.
        bar = board.bar({ label: `copy ${table}`, unit: 'bytes' })
        bars.set(table, bar)
      }
      bar.update(bytes)
    },
    verified: (table) => board.note(`${table.name}: ${table.same ? 'equal' : 'different'}`),
  }
}

/** A table of the console: typed columns and a function that makes its rows from the view. */
import type { ProxyView } from './proxy-view.js'

export type ColumnType = 'text' | 'int4' | 'int8' | 'numeric' | 'bool'
export type Cell = string | number | boolean | null

export interface ColumnOf<R> {
  readonly name: string
  readonly type: ColumnType
  readonly value: (row: R) => Cell
}

export interface ShowTable {
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[]
  rows(view: ProxyView): Cell[][]
}

export const text = <R>(name: string, value: (row: R) => string | null): ColumnOf<R> => ({
  name,
  type: 'text',
  value,
})

/** A whole number; fractions are cut. */
export const count = <R>(name: string, value: (row: R) => number): ColumnOf<R> => ({
  name,
  type: 'int8',
  value: (row) => Math.trunc(value(row)),
})

export const bool = <R>(name: string, value: (row: R) => boolean): ColumnOf<R> => ({
  name,
  type: 'bool',
  value,
})

/** Milliseconds shown in microseconds, PgBouncer's unit. */
export const micros = <R>(name: string, valueMs: (row: R) => number): ColumnOf<R> =>
  count(name, (row) => valueMs(row) * 1000)

export function table<R>(
  columns: readonly ColumnOf<R>[],
  rowsOf: (view: ProxyView) => readonly R[],
): ShowTable {
  return {
    columns,
    rows: (view) => rowsOf(view).map((row) => columns.map((column) => column.value(row))),
  }
}

/** `2026-11-29 22:00:00 UTC`, PgBouncer's form. */
export function stamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** `1h 2m 3s`. */
export function span(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
  ].flatMap(([n, unit]) => (n ? [`${n}${unit}`] : []))
  return [...parts, `${seconds % 60}s`].join(' ')
}

/** What the tests use of pg-cursor, which brings no types. */
declare module 'pg-cursor' {
  import type { Submittable } from 'pg'
  // biome-ignore lint/style/noDefaultExport: the module has one
  export default class Cursor<Row = unknown> implements Submittable {
    constructor(text: string, values?: unknown[])
    submit(connection: import('pg').Connection): void
    read(rows: number): Promise<Row[]>
    close(): Promise<void>
  }
}

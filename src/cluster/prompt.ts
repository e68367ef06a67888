/**
 * A small prompt for machines without psql: statements over several lines until ";", tables,
 * \d \dt \l \r \q. Not a replacement of psql: no variables, no \copy, no editor.
 */
import { createInterface, type Interface } from 'node:readline'
import { closePg } from '../pg/admin-query.js'
import { type HostClient, openHostClient } from '../pg/host-client.js'
import type { InstanceAddress } from './instance-query.js'
import { columnOf, printRows } from './print-rows.js'
import { cutStatements } from './statement-buffer.js'

export interface PromptStreams {
  input: NodeJS.ReadableStream & { isTTY?: boolean }
  output: NodeJS.WritableStream
  errors: NodeJS.WritableStream
}

const RELATIONS = `SELECT n.nspname AS "Schema", c.relname AS "Name",
  CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
    WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' END AS "Type",
  pg_get_userbyid(c.relowner) AS "Owner"
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r','p','v','m','S','f') AND n.nspname NOT IN ('pg_catalog','information_schema')
    AND n.nspname !~ '^pg_(toast|temp)' AND pg_table_is_visible(c.oid)`

const COLUMNS = `SELECT attname AS "Column", format_type(atttypid, atttypmod) AS "Type",
  CASE WHEN attnotnull THEN 'not null' ELSE '' END AS "Nullable",
  coalesce(pg_get_expr(adbin, adrelid), '') AS "Default"
  FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`

const INDEXES = `SELECT pg_get_indexdef(indexrelid) AS "Indexes" FROM pg_index
  WHERE indrelid = $1::text::regclass ORDER BY 1`

const DATABASES = `SELECT datname AS "Name", pg_get_userbyid(datdba) AS "Owner",
  pg_size_pretty(pg_database_size(oid)) AS "Size" FROM pg_database WHERE NOT datistemplate ORDER BY 1`

const HELP = `  ;              ends a statement; it may take several lines
  \\d [NAME]      lists tables, views and sequences, or describes one
  \\dt            lists tables
  \\l             lists databases
  \\r             forgets what was typed of a statement
  \\q             quits
`

/** Values of every row as the server's text. */
const asText = { getTypeParser: () => (value: string) => value } as never

interface ArrayResult {
  command: string | null
  fields: { name: string; dataTypeID: number }[]
  rows: (string | null)[][]
}

class Prompt {
  readonly #client: HostClient
  readonly #streams: PromptStreams
  readonly #database: string
  #typed = ''
  /** Tags of the statements of one run, in order: node-postgres keeps only their first words. */
  #tags: string[] = []
  failed = false

  constructor(client: HostClient, streams: PromptStreams, database: string) {
    this.#client = client
    this.#streams = streams
    this.#database = database
    client.connection.on('commandComplete', ({ text }: { text: string }) => this.#tags.push(text))
    client.on('notice', (notice) => this.#complain(`${notice.severity}:  ${notice.message}`))
  }

  get text(): string {
    return `${this.#database}${this.#typed.trim() === '' ? '=' : '-'}# `
  }

  /** Forgets a statement half typed; true when there was one. */
  forget(): boolean {
    const had = this.#typed.trim() !== ''
    this.#typed = ''
    return had
  }

  /** Takes one line; false when the person wants to go. */
  async line(line: string): Promise<boolean> {
    const isFirst = this.#typed.trim() === ''
    if (isFirst && /^\s*(\\q|quit|exit)\s*;?\s*$/.test(line)) return false
    if (isFirst && line.trimStart().startsWith('\\')) {
      await this.#command(line.trim())
      return true
    }
    if (/^\s*\\r\s*$/.test(line)) this.forget()
    else await this.#take(`${line}\n`)
    return true
  }

  /** What was typed without a final semicolon, as `psql -c` runs it. */
  async finish(): Promise<void> {
    if (this.#typed.trim() !== '') await this.#take(';')
  }

  async #take(text: string): Promise<void> {
    const { statements, rest } = cutStatements(this.#typed + text)
    this.#typed = rest
    for (const statement of statements) await this.#run(statement)
  }

  async #command(line: string): Promise<void> {
    const [name, ...words] = line.replace(/;$/, '').trim().split(/\s+/)
    if (name === '\\d' && words[0]) {
      await this.#run(COLUMNS, [words[0]])
      await this.#run(INDEXES, [words[0]])
    } else if (name === '\\d') await this.#run(`${RELATIONS} ORDER BY 1, 2`)
    else if (name === '\\dt')
      await this.#run(`${RELATIONS} AND c.relkind IN ('r','p') ORDER BY 1, 2`)
    else if (name === '\\l') await this.#run(DATABASES)
    else if (name === '\\?' || name === '\\h') this.#print(HELP)
    else this.#complain(`invalid command ${name}; try \\? for help`)
  }

  async #run(text: string, values?: string[]): Promise<void> {
    this.#tags = []
    try {
      const query = {
        text,
        rowMode: 'array' as const,
        types: asText,
        ...(values ? { values } : {}),
      }
      const result = (await this.#client.query(query)) as unknown as ArrayResult | ArrayResult[]
      for (const [index, one] of (Array.isArray(result) ? result : [result]).entries()) {
        if (one.fields.length > 0) this.#print(`${printRows(one.fields.map(columnOf), one.rows)}\n`)
        else this.#print(`${this.#tags[index] ?? one.command ?? ''}\n`)
      }
    } catch (error) {
      this.#report(error as { severity?: string; message: string; detail?: string; hint?: string })
    }
  }

  #report(error: { severity?: string; message: string; detail?: string; hint?: string }): void {
    this.failed = true
    this.#complain(`${error.severity ?? 'ERROR'}:  ${error.message}`)
    if (error.detail) this.#complain(`DETAIL:  ${error.detail}`)
    if (error.hint) this.#complain(`HINT:  ${error.hint}`)
  }

  #print(text: string): void {
    this.#streams.output.write(text)
  }

  #complain(text: string): void {
    this.#streams.errors.write(`${text}\n`)
  }
}

async function readLines(lines: Interface, prompt: Prompt, isInteractive: boolean): Promise<void> {
  const ask = () => {
    if (!isInteractive) return
    lines.setPrompt(prompt.text)
    lines.prompt()
  }
  lines.on('SIGINT', () => {
    if (!prompt.forget())
      lines.close() // as a shell: once forgets the line, on an empty one it quits
    else ask()
  })
  ask()
  for await (const line of lines) {
    if (!(await prompt.line(line))) break
    ask()
  }
}

/** Talks with a person (or a script on `input`) until the end; resolves with an exit code. */
export async function runPrompt(
  address: InstanceAddress,
  streams: PromptStreams,
  commands: readonly string[],
): Promise<number> {
  const { password, ...rest } = address
  const client = await openHostClient({ host: '127.0.0.1', ...rest, password: password ?? '' })
  const prompt = new Prompt(client, streams, address.database)
  try {
    if (commands.length > 0) {
      for (const command of commands) {
        await prompt.line(command)
        await prompt.finish()
      }
    } else {
      const isInteractive = streams.input.isTTY === true
      if (isInteractive)
        streams.output.write(
          'psql is not installed: a small prompt. \\? for help, \\q to quit.\n\n',
        )
      const lines = createInterface({
        input: streams.input,
        ...(isInteractive ? { output: streams.output, terminal: true } : {}),
        crlfDelay: Number.POSITIVE_INFINITY,
      })
      await readLines(lines, prompt, isInteractive)
      lines.close()
    }
    await prompt.finish()
  } finally {
    await closePg(client)
  }
  return prompt.failed && (commands.length > 0 || streams.input.isTTY !== true) ? 1 : 0
}

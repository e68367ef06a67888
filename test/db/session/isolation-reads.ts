/** Reads that a proxy may put on one server behind those of others: plain, repeatable, of clients with equal settings. */
import { fieldsOf, type Message, say, textsOf, type WireClient } from '../../support/wire-client.js'

export const LETTERS = 'create table letter (tag text primary key, body text)'
export const WRITE_LETTERS = `insert into letter
  select t, t || ' reads ' || repeat('x', n * 10) from (select 'client-' || lpad(n::text, 2, '0') as t, n from generate_series(0, 99) n) s`

/** What a read should answer: its rows, or the message of its error. */
interface Read {
  readonly request: readonly Buffer[]
  readonly wanted: string
}

function readsOf(tag: string): Read[] {
  const number = Number(tag.slice(-2))
  const body = `${tag} reads ${'x'.repeat(number * 10)}`
  const extended = (sql: string, values: string[] = []) => [
    say.parse('', sql),
    say.bind('', values),
    say.execute(),
    say.sync(),
  ]
  return [
    { request: [say.query(`select body from letter where tag = '${tag}'`)], wanted: body },
    { request: extended('select body from letter where tag = $1', [tag]), wanted: body },
    {
      request: [say.query(`select tag::int from letter where tag = '${tag}'`)],
      wanted: `invalid input syntax for type integer: "${tag}"`,
    },
    {
      request: extended('select 1 / (length(tag) - 9) from letter where tag = $1', [tag]),
      wanted: 'division by zero',
    },
  ]
}

/**
 * Several reads one after the other, some with a cancel that races them. Gives every message to `inspect`, and what was
 * wrong. True: all were answered; false: no server came free in time.
 */
export async function readLetters(
  client: WireClient,
  options: {
    tag: string
    port: number
    random: (below: number) => number
    inspect: (message: Message) => void
    expect: (what: string, found: unknown, wanted: unknown) => void
  },
): Promise<boolean> {
  const reads = readsOf(options.tag)
  for (let i = 0; i < 12; i++) {
    const { request, wanted } = reads[options.random(reads.length)] as Read
    const isCancelled = options.random(6) === 0
    const asked = client.ask(request)
    if (isCancelled) await client.cancel(options.port)
    const [answer = []] = await asked
    for (const message of answer) options.inspect(message)
    const failure = answer.find(({ tag }) => tag === 'E')
    const code = failure && fieldsOf(failure)['C']
    if (code === '53300') return false
    if (isCancelled && code === '57014') continue
    const rows = answer.filter(({ tag }) => tag === 'D').map(textsOf)
    options.expect(
      'a read beside others',
      failure ? fieldsOf(failure)['M'] : rows.flat().join(),
      wanted,
    )
  }
  return true
}

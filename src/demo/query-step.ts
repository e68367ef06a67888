/** The demo asks through the proxy: one shard, all shards, and every row back. */
import { formatCount } from '../cli/render.js'
import type { Cluster } from '../cluster/cluster.js'
import { adminQuery } from '../pg/admin-query.js'
import type { HostClient } from '../pg/host-client.js'
import { makeKeyPlacer } from '../sharding/key-placer.js'
import {
  customerColumns,
  customerId,
  customerRow,
  type MadeFile,
  ORDERS_PER_CUSTOMER,
  orderColumns,
} from './data-set.js'
import { Digest, type Field } from './digest.js'
import { shardMapOf } from './load-step.js'
import type { ProxyProcess } from './proxy-process.js'
import { askShards, DATABASE, type Stage, withProxy } from './stage.js'

/** Rows at a time when everything is read back. */
const ASK = {
  customers: `SELECT ${customerColumns.join(', ')} FROM customers`,
  orders: `SELECT customer_id, id, item, amount, to_char(placed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || '+00' AS placed_at, remark FROM orders`,
}

/** The first rows that are not as expected, in words; for the report of a failure. */
export async function differencesOf(
  client: HostClient,
  table: 'customers' | 'orders',
  expected: Iterable<Field[]>,
): Promise<string> {
  const columns = table === 'customers' ? customerColumns : orderColumns
  const keyOf = (row: readonly Field[]) => (table === 'customers' ? row[0]! : `${row[0]} ${row[1]}`)
  const found = new Map<string, Field[]>()
  for (const row of await adminQuery(client, ASK[table])) {
    const fields = columns.map((column): Field => row[column] ?? null)
    found.set(keyOf(fields), fields)
  }
  const lines: string[] = []
  for (const row of expected) {
    const other = found.get(keyOf(row))
    found.delete(keyOf(row))
    if (JSON.stringify(row) !== JSON.stringify(other))
      lines.push(`expected ${JSON.stringify(row)}, found ${JSON.stringify(other ?? 'nothing')}`)
  }
  for (const row of found.values()) lines.push(`not expected: ${JSON.stringify(row)}`)
  return [`${lines.length} rows differ`, ...lines.slice(0, 5)].join('\n')
}

/** All rows of a table through the proxy, as a digest. */
export async function digestOf(client: HostClient, table: 'customers' | 'orders'): Promise<Digest> {
  const columns = table === 'customers' ? customerColumns : orderColumns
  const digest = new Digest()
  for (const row of await adminQuery(client, ASK[table]))
    digest.add(columns.map((column): Field => row[column] ?? null))
  return digest
}

interface Answer {
  what: string
  shards: string
  rows: number
  ms: number
}

async function timed(
  stage: Stage,
  what: string,
  shards: string,
  ask: () => Promise<unknown[]>,
): Promise<Answer> {
  const begin = stage.clock.monotonicMs()
  const rows = (await ask()).length
  return { what, shards, rows, ms: stage.clock.monotonicMs() - begin }
}

/** The shard of a customer's rows, by the configuration. */
function shardOf(stage: Stage, id: string, database = DATABASE): number {
  const kind = shardMapOf(stage, database).tableOf('public', 'customers', (name) => name === 'id')
  if (kind.kind !== 'sharded') throw new Error('customers is not sharded')
  const bytes = Buffer.from(id)
  return makeKeyPlacer(kind.table).ofText(bytes, 0, bytes.length)
}

async function askOneAndAll(stage: Stage, client: HostClient): Promise<Answer[]> {
  const [plain, negative, huge] = [10, 9, 57].map(customerId)
  const on = (id: string) => `shard ${shardOf(stage, id)}`
  const email = 'c17@example.com'
  return [
    await timed(stage, 'one customer, the key as a literal', on(plain!), () =>
      adminQuery(client, `SELECT * FROM customers WHERE id = ${plain}`),
    ),
    await timed(stage, 'one customer, the key as a parameter', on(negative!), () =>
      adminQuery(client, 'SELECT * FROM customers WHERE id = $1', [negative!]),
    ),
    await timed(stage, 'a join with GROUP BY inside one customer', on(huge!), () =>
      adminQuery(
        client,
        `SELECT c.name, count(*), sum(o.amount) FROM customers c JOIN orders o ON o.customer_id = c.id
         WHERE c.id = $1 AND o.customer_id = $1 GROUP BY c.name`,
        [huge!],
      ),
    ),
    await timed(stage, 'a search without the key', 'all shards', () =>
      adminQuery(client, `SELECT id, name FROM customers WHERE email = '${email}'`),
    ),
  ]
}

/** Two statements of one transaction on one shard, undone at its end. */
async function tryTransaction(client: HostClient): Promise<boolean> {
  const id = customerId(4)
  const balance = async () =>
    (await adminQuery(client, 'SELECT balance FROM customers WHERE id = $1', [id]))[0]?.['balance']
  const before = await balance()
  await adminQuery(client, 'BEGIN')
  await adminQuery(client, 'UPDATE customers SET balance = balance + 1 WHERE id = $1', [id])
  const inside = await balance()
  await adminQuery(client, 'ROLLBACK')
  return before !== inside && before === (await balance())
}

async function compareCustomer(stage: Stage, client: HostClient, cluster: Cluster): Promise<void> {
  const n = 57
  const id = customerId(n)
  const [row] = await adminQuery(client, ASK.customers.concat(' WHERE id = $1'), [id])
  const here = await askShards(cluster, `SELECT FROM customers WHERE id = ${id}`)
  const found = here.flatMap((rows, shard) => (rows.length > 0 ? [shard] : []))
  const wanted = customerRow(n)
  stage.story.check(
    found.join() === String(shardOf(stage, id)) &&
      customerColumns.every((column, index) => (row?.[column] ?? null) === wanted[index]),
    `key ${id} lies on shard ${found.join()} alone, every field as in the file`,
  )
}

/** Asks, and compares every row with what was loaded. */
export async function askThroughProxy(
  stage: Stage,
  proxy: ProxyProcess,
  cluster: Cluster,
  files: { customers: MadeFile; orders: MadeFile },
): Promise<void> {
  await withProxy(proxy, async (client) => {
    await askOneAndAll(stage, client) // once to open the connections, once to look at the clock
    const answers = await askOneAndAll(stage, client)
    stage.story.table(
      ['statement', 'asked', 'rows', 'time'],
      answers.map(({ what, shards, rows, ms }) => [what, shards, rows, `${ms.toFixed(1)} ms`]),
    )
    stage.story.check(
      answers.every(({ rows }) => rows === 1),
      'each of them gives its one row',
      JSON.stringify(answers),
    )
    await compareCustomer(stage, client, cluster)
    stage.story.check(
      await tryTransaction(client),
      'a transaction sees its own write and rolls it back',
    )
    for (const table of ['customers', 'orders'] as const) {
      stage.story.status(`reading all ${table}`)
      const digest = await digestOf(client, table)
      stage.story.check(
        digest.equals(files[table].digest),
        `all ${formatCount(digest.rows)} ${table} come back through the proxy, field for field`,
        `${digest} and not ${files[table].digest}`,
      )
    }
  })
  stage.story.line(
    `(${ORDERS_PER_CUSTOMER} orders a customer live beside the customer: joins stay on one shard)`,
  )
}

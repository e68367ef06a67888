/** Applying against a native subscription: rate, and CPU of the targets. */
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { cleanupRun } from '../../dist/src/reshard/cleanup.js'
import {
  CHANGES,
  clock,
  drop,
  fill,
  makeDatabases,
  median,
  move,
  place,
  ROUNDS,
  rowsOf,
  schema,
  side,
  sql,
  tell,
} from './stage.mjs'

const TICKS_PER_S = 100

/** CPU seconds of the backends that apply, as last seen. */
function watchCpu(where) {
  const seen = new Map()
  let isOver = false
  const loop = (async () => {
    const client = new pg.Client({ ...place, database: 'postgres' })
    await client.connect()
    while (!isOver) {
      for (const { pid } of (await client.query(`SELECT pid FROM pg_stat_activity WHERE ${where}`))
        .rows) {
        try {
          const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
          const now = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S
          const first = seen.get(pid)?.first ?? now
          seen.set(pid, { first, now })
        } catch {}
      }
      await clock.sleep(50)
    }
    await client.end()
  })()
  return async () => {
    isOver = true
    await loop
    return [...seen.values()].reduce((sum, { first, now }) => sum + now - first, 0)
  }
}
/** Half inserts, half updates, 100 rows a transaction. */
const writeChanges = (name, from) =>
  sql(
    name,
    `DO $$ BEGIN FOR batch IN 0..${CHANGES / 200 - 1} LOOP
  INSERT INTO acct SELECT ${rowsOf} FROM generate_series(${from}::bigint + batch * 100 + 1, ${from}::bigint + batch * 100 + 100) i; COMMIT;
  UPDATE acct SET note = note || '!' WHERE (tenant, id) IN (SELECT i % 5000, i FROM generate_series(${from}::bigint + batch * 100 + 1, ${from}::bigint + batch * 100 + 100) i); COMMIT;
  END LOOP; END $$`,
  )

async function applyNative(from, plain, rates) {
  const nativeCpu = watchCpu(`backend_type LIKE 'logical replication%'`)
  const [{ lsn }] = await sql(from, 'SELECT pg_current_wal_flush_lsn() AS lsn')
  const started = performance.now()
  await sql(plain, 'ALTER SUBSCRIPTION native ENABLE')
  for (;;) {
    const [{ done }] = await sql(
      from,
      `SELECT confirmed_flush_lsn >= '${lsn}'::pg_lsn AS done FROM pg_replication_slots WHERE slot_name = 'native'`,
    )
    if (done) break
    await clock.sleep(20)
  }
  rates.native.push(CHANGES / ((performance.now() - started) / 1000))
  rates.nativeCpu.push(await nativeCpu())
}

export async function apply() {
  const [from, plain] = await makeDatabases(2)
  const to = await makeDatabases(4)
  await fill([from], 1000)
  await sql(plain, schema)
  const [source, target] = [side('a', [from]), side('b', to)]
  await move(source, target, 'follow')
  await sql(
    from,
    'CREATE PUBLICATION native FOR TABLE acct',
    `SELECT pg_create_logical_replication_slot('native', 'pgoutput')`,
  )
  const { host, port, user } = place
  const conninfo = `host=${host} port=${port} user=${user} dbname=${from}`
  await sql(
    plain,
    `CREATE SUBSCRIPTION native CONNECTION '${conninfo}' PUBLICATION native WITH (create_slot = false, slot_name = 'native', copy_data = false, enabled = false)`,
  )
  const rates = { ours: [], native: [], oursCpu: [], nativeCpu: [] }
  for (let round = 0; round < ROUNDS; round++) {
    await writeChanges(from, 1_000_000 + round * CHANGES)
    const ourCpu = watchCpu(
      `application_name LIKE 'pgshard%' AND datname IN (${to.map((name) => `'${name}'`)}) AND query NOT LIKE '%reshard_sample%'`,
    )
    let begun = 0
    await move(source, target, 'follow', {
      step: (text) => {
        if (text.startsWith('applying')) begun = performance.now()
        if (text.startsWith('caught up'))
          rates.ours.push(CHANGES / ((performance.now() - begun) / 1000))
      },
    })
    rates.oursCpu.push(await ourCpu())
    await applyNative(from, plain, rates)
    await sql(plain, 'ALTER SUBSCRIPTION native DISABLE')
    await clock.sleep(500)
  }
  const [ours, native] = [median(rates.ours), median(rates.native)]
  const kilo = (rate) => `${Math.round(rate / 1000)} k changes/s`
  tell(
    'apply 1 → 4 against a native subscription to one',
    kilo(ours),
    kilo(native),
    ours / native,
    0.95,
  )
  const micros = (cpu) => `${((median(cpu) * 1e6) / CHANGES).toFixed(1)} µs a change`
  tell(
    'CPU of the targets (peer / ours)',
    micros(rates.oursCpu),
    micros(rates.nativeCpu),
    median(rates.nativeCpu) / median(rates.oursCpu),
    1,
  )
  await sql(plain, 'ALTER SUBSCRIPTION native SET (slot_name = NONE)', 'DROP SUBSCRIPTION native')
  await cleanupRun({ from: source, to: target, clock, dropTarget: true, liftFence: false })
  await sql(from, `SELECT pg_drop_replication_slot('native')`)
  await drop([from, plain, ...to])
}

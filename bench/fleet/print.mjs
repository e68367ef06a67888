/** What bench/fleet.mjs prints: tables in Markdown. */
const n0 = (value) => value.toFixed(0)
const n2 = (value) => value.toFixed(2)

function table(titles, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)].join('\n')
}

function printMeasured({ rows, hold, cores, workers }) {
  const names = (count) => [
    `tps, ${count}`,
    'cores of the pooler',
    'cores of the machine',
    'busiest',
  ]
  const of = (one) => [
    n0(one.tps),
    n2(one.busy_cores.pooler),
    n2(one.machine_busy_cores),
    one.busiest_tier,
  ]
  const line = (what, row) => [
    what,
    ...of(row.single),
    ...of(row.fleet),
    n2(row.fleet.tps / row.single.tps),
  ]
  const lines = rows.map((row) => line(row.clients, row))
  if (hold) lines.push(line(`${hold.clients}, held ${hold.seconds} s`, hold))
  console.log(`Measured, ${cores} cores, ${workers.single} process against ${workers.fleet}:\n`)
  console.log(table(['clients', ...names(workers.single), ...names(workers.fleet), 'ratio'], lines))
}

function printCosts({ model }) {
  console.log('\nMicroseconds of processor time a transaction:\n')
  const lines = ['single', 'fleet'].map((which) => {
    const { poolerUs, serverUs, generatorUs } = model.costs_us[which]
    return [which, ...[poolerUs, serverUs, generatorUs].map((us) => us.toFixed(1))]
  })
  console.log(table(['', 'pooler', 'PostgreSQL', 'generator'], lines))
}

function printModel({ model, model_workers: workers }) {
  console.log('\nThe model over what was measured here:\n')
  const here = model.against_measured_here.map((row) => [
    row.clients,
    n2(row.single),
    n2(row.fleet),
  ])
  console.log(table(['clients', 'single', 'fleet'], here))
  const { poolerCores, serverCores, generatorCores, delayUs } = model.machines
  console.log(
    `\nModelled: ${poolerCores} cores for the pooler, ${serverCores} for PostgreSQL, ${generatorCores} for the generator, ${delayUs} µs of network, ${workers} processes:\n`,
  )
  const elsewhere = model.elsewhere.map((row) => [
    row.clients,
    n0(row.single_tps),
    n0(row.fleet_tps),
    n2(row.ratio),
    n2(row.ratio_measured_elsewhere),
    n2(row.fleet_pooler_busy_cores),
  ])
  const titles = [
    'clients',
    'tps, 1',
    `tps, ${workers}`,
    'ratio',
    'ratio in H8–H12',
    'cores of the fleet',
  ]
  console.log(table(titles, elsewhere))
}

function printHint({ rows }) {
  const full = rows.find(({ single }) => single.busiest_pooler_process > 0.95)
  if (full === undefined) return
  console.log(
    `\nWith ${full.clients} clients the single process used more than 95 % of a core: serve --workers lets it use others.`,
  )
}

export function printResult(result) {
  printMeasured(result)
  printCosts(result)
  printModel(result)
  printHint(result)
}

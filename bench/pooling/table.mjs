/** The rows of bench/pooler.mjs as a table, plain or as Markdown for docs/benchmarks.md. */

const HEAD = ['protocol', 'clients', 'PgBouncer tps · CPU', 'pgshard tps · CPU', 'tps', 'CPU']

const side = ({ tps, cpuUs }) => `${tps.toFixed(0)} · ${cpuUs.toFixed(1)} µs`

/** CPU of each process, where several share the work. */
function ownSide(of) {
  const busy = (of.byProcessUs ?? []).filter((us) => us >= 0.05)
  if (busy.length < 2) return side(of)
  return `${side(of)} (${busy.map((us) => us.toFixed(1)).join(' + ')})`
}

function cellsOf(row) {
  const clients = String(row.clients)
  const verdict = row.holds ? 'holds' : 'missed'
  if (row.addedUs) {
    const { pgbouncer, pgshard } = row.addedUs
    const sides = [`+${pgbouncer.toFixed(0)} µs`, `+${pgshard.toFixed(0)} µs`]
    const { latency } = row.ratio
    return [row.what, clients, ...sides, latency.toFixed(2), '', `≤ ${row.target.latency}`, verdict]
  }
  const cpu = row.target.cpu === null ? '' : `, CPU ≤ ${row.target.cpu}`
  const ratios = [row.ratio.tps.toFixed(2), row.ratio.cpu.toFixed(2)]
  const sides = [side(row.pgbouncer), ownSide(row.pgshard)]
  return [row.what, clients, ...sides, ...ratios, `≥ ${row.target.tps}${cpu}`, verdict]
}

/** A row as scripts/benchmarks.mjs keeps it. */
export function figureOf(row) {
  const [what, clients, peer, ours, ratio, cpu, target] = cellsOf(row)
  const who = `${clients} client${clients === '1' ? '' : 's'}`
  const ratios = cpu === '' ? ratio : `${ratio} · ${cpu}`
  return { what: `${what}, ${who}`, peer, ours, ratio: ratios, target, holds: row.holds }
}

export function printTable(rows) {
  const lines = [[...HEAD, 'target', ''], ...rows.map(cellsOf)]
  const widths = lines[0].map((_, i) => Math.max(...lines.map((line) => line[i].length)))
  for (const line of lines)
    console.log(
      line
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('  ')
        .trimEnd(),
    )
}

export function printMarkdown(rows) {
  const line = (cells) => console.log(`| ${cells.join(' | ')} |`)
  line([...HEAD, 'target'])
  line([...HEAD, ''].map(() => '---'))
  for (const row of rows) {
    const cells = cellsOf(row)
    const verdict = cells.pop()
    line([...cells.slice(0, -1), `${cells.at(-1)}: ${verdict}`])
  }
}

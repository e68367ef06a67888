/**
 * Seconds of CPU of a load, of its client and of its servers apart, which other work on the machine changes less than the time
 * it takes: copy-shard beside four psql on files that are split already and beside one psql.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const TICKS_PER_S = 100

const statOf = (pid) => {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ').map(Number)
  } catch {
    return undefined
  }
}

/** The process of the server whose data lies there. */
const postmasterOf = (directory) =>
  Number(readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')[0])

/** Of postmasters, their processes, and those that have ended. */
function serverSeconds(postmasters) {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = statOf(name)
    if (stat === undefined) continue
    if (postmasters.includes(Number(name))) ticks += stat[11] + stat[12] + stat[13] + stat[14]
    else if (postmasters.includes(stat[1])) ticks += stat[11] + stat[12]
  }
  return ticks / TICKS_PER_S
}

/** `runs`: by label, what loads once (an object with `cpuS`); interleaved. Prints each and the medians. */
export async function benchCpu({ format, rows, rounds, directories, before, runs }) {
  console.log(`${format}, ${rows} rows: seconds of CPU, medians of ${rounds} rounds`)
  const postmasters = directories.map(postmasterOf)
  const seen = Object.fromEntries(Object.keys(runs).map((label) => [label, []]))
  for (let round = 0; round < rounds; round++)
    for (const [label, run] of Object.entries(runs)) {
      await before()
      const from = serverSeconds(postmasters)
      const { cpuS } = await run()
      seen[label].push({ client: cpuS, servers: serverSeconds(postmasters) - from })
    }
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1]
  for (const [label, all] of Object.entries(seen)) {
    const client = median(all.map((one) => one.client))
    const servers = median(all.map((one) => one.servers))
    const words = [client, servers, client + servers].map((value) => value.toFixed(2).padStart(6))
    console.log(`  ${label.padEnd(26)} client ${words[0]}  servers ${words[1]}  sum ${words[2]}`)
  }
}

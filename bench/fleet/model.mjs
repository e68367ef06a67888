/**
 * What one pooler process and a fleet of them would do on machines of their own: mean value analysis of a closed
 * network, from the processor time that a transaction takes in each tier. See docs/fleet.md for what it assumes.
 */

/**
 * Transactions a second of `clients` that ask again as soon as they are answered.
 * A station: `demandUs` of processor time a transaction, on `servers` cores. `delayUs`: what passes without a core (network).
 * A station of m cores counts as one m times as fast and a delay of the rest (Seidmann's approximation).
 */
export function closedNetwork(stations, delayUs, clients) {
  const fast = stations.map(({ demandUs, servers }) => demandUs / servers)
  const rest = stations.reduce(
    (sum, { demandUs, servers }) => sum + (demandUs * (servers - 1)) / servers,
    delayUs,
  )
  let queues = stations.map(() => 0)
  let tps = 0
  for (let n = 1; n <= clients; n++) {
    const times = fast.map((demand, i) => demand * (1 + queues[i]))
    tps = n / (rest + times.reduce((sum, time) => sum + time, 0))
    queues = times.map((time) => tps * time)
  }
  return tps * 1e6
}

/** Everything on one machine of `cores`; a pooler of `workers` processes never uses more of them than it has processes. */
export function oneMachine({ poolerUs, serverUs, generatorUs }, { cores, workers, clients }) {
  const shared = { demandUs: poolerUs + serverUs + generatorUs, servers: cores }
  const alone = closedNetwork([shared], 0, clients)
  return Math.min(alone, (Math.min(workers, cores) / poolerUs) * 1e6)
}

/** Pooler, database and load on machines of their own. */
export function threeMachines({ poolerUs, serverUs, generatorUs }, machines, { workers, clients }) {
  const stations = [
    { demandUs: poolerUs, servers: Math.min(workers, machines.poolerCores) },
    { demandUs: serverUs, servers: machines.serverCores },
    { demandUs: generatorUs, servers: machines.generatorCores },
  ]
  return closedNetwork(stations, machines.delayUs, clients)
}

/** Cores busy in the pooler at that rate. */
export const busyCores = (poolerUs, tps) => (poolerUs * tps) / 1e6

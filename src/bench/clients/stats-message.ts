/** Statistics as plain data between threads: histograms travel as text. */
import { LatencyHistogram } from './latency-histogram.js'
import type { GroupStats, NodeStats } from './stats.js'

type EncodedNode = Omit<NodeStats, 'latency' | 'connectTime'> & {
  readonly latency: string
  readonly connectTime: string
}

export type EncodedStats = Omit<GroupStats, 'nodes' | 'lag'> & {
  readonly nodes: readonly EncodedNode[]
  readonly lag: string
}

export const encodeStats = (stats: GroupStats): EncodedStats => ({
  ...stats,
  lag: stats.lag.encode(),
  nodes: stats.nodes.map((node) => ({
    ...node,
    latency: node.latency.encode(),
    connectTime: node.connectTime.encode(),
  })),
})

export const decodeStats = (encoded: EncodedStats): GroupStats => ({
  ...encoded,
  lag: new LatencyHistogram(encoded.lag),
  nodes: encoded.nodes.map((node) => ({
    ...node,
    latency: new LatencyHistogram(node.latency),
    connectTime: new LatencyHistogram(node.connectTime),
  })),
})

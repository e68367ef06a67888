/** What SHOW REPLICATION says of a host: numbers and text, no big integers, because rows cross to other processes. */
import type { ReplicationView } from '../../admin/proxy-view.js'
import type { HostState } from '../../pool/roles.js'

/** undefined while the host has not answered. */
export function replicationOf(
  state: HostState | undefined,
  nowMs: number,
): ReplicationView | undefined {
  if (!state?.report) return undefined
  const { report, lag, seenAtMs } = state
  return {
    lsn: lsnText(report.lsnBytes),
    timeline: report.timeline,
    isInRecovery: report.isInRecovery,
    ageMs: nowMs - seenAtMs,
    lagMs: lag?.ms,
    lagBytes: lag && Number(lag.bytes),
  }
}

/** `16/B374D848`. */
const lsnText = (bytes: bigint): string =>
  `${(bytes >> 32n).toString(16)}/${(bytes & 0xffff_ffffn).toString(16)}`.toUpperCase()

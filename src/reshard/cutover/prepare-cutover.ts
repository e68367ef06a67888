/**
 * All that a cutover can do while clients go on: epochs and fences made, proxies and what would hold up the lock looked
 * at, connections opened. Refuses before anybody has to wait.
 */
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { openTakers } from '../buckets/take-in.js'
import { openShard, placeOf } from '../side.js'
import type { CutoverOptions, WayBack } from './cutover-options.js'
import {
  announceSql,
  closeSql,
  decideSql,
  prepareEpochs,
  REGISTRY_FOUND_MS,
  readEpoch,
  truthOf,
} from './epoch-store.js'
import {
  type FenceSession,
  isRaised,
  lockBlockers,
  openFenceSession,
  prepareFence,
} from './fence.js'

/** Proxies that need longer than this to get ready are not waited for: the pause is longer with them. */
const READY_MS = 8000

export interface Prepared {
  /** One for each shard of the old side; their connections are `sources`. */
  readonly fences: readonly FenceSession[]
  readonly sources: readonly HostClient[]
  readonly targets: readonly HostClient[]
  /** One for each target of a move that is staged: its rows are taken in on them, before and behind the decision. */
  readonly takers: readonly HostClient[]
  readonly closeSql: string
  readonly epoch: number
  /** Armed; undefined: there is none. */
  readonly wayBack: WayBack | undefined
  /** Commits the epoch on the new side, with facts for the journal in the same transaction. */
  decide(facts?: Record<string, unknown>): Promise<void>
  /** A table of the new side has a fence of an earlier cutover that must be lowered. */
  readonly isTargetFenced: boolean
  sequences: number
  isFenced: boolean
  /** The deciding commit was sent. */
  isDeciding: boolean
  close(): Promise<void>
}

export async function prepareCutover(options: CutoverOptions): Promise<Prepared> {
  const { source, target, plan, journal, clock } = options
  const isFresh = await prepareEpochs(source, target, journal.run)
  const madeMs = clock.monotonicMs()
  await prepareFences(options)
  const { wayBack } = options
  await wayBack?.arm()
  if (isFresh) await clock.sleep(Math.max(0, REGISTRY_FOUND_MS - (clock.monotonicMs() - madeMs)))
  await options.gate.open()
  await refusePinned(options)
  await waitForBlockers(options)
  const fences: FenceSession[] = []
  const targets: HostClient[] = []
  const takers: HostClient[] = []
  const close = async () => {
    const all = [...fences.map(({ client }) => client), ...targets, ...takers]
    await Promise.all(all.map((client) => client.end().catch(() => undefined)))
  }
  try {
    for (const shard of source.shards.keys()) {
      fences.push(await openFenceSession(source, shard, plan))
    }
    for (const shard of target.shards) targets.push(await openShard(shard))
    if (target.isStaged) takers.push(...(await openTakers(target)))
    const first = targets[0] as HostClient
    await waitForProxies(options, (fences[0] as FenceSession).client)
    const rows = await Promise.all([
      readEpoch((fences[0] as FenceSession).client),
      readEpoch(first),
    ])
    const epoch = Math.max(...rows.map((row) => row?.epoch ?? 0)) + 1
    const prepared: Prepared = {
      fences,
      sources: fences.map(({ client }) => client),
      targets,
      takers,
      closeSql: closeSql(journal.run, await truthOf(target)),
      epoch,
      wayBack,
      isTargetFenced: (await Promise.all(targets.map(isRaised))).includes(true),
      decide: async (facts) => {
        prepared.isDeciding = true
        await adminQuery(first, decideSql(epoch, journal.run, facts))
      },
      sequences: 0,
      isFenced: false,
      isDeciding: false,
      close,
    }
    return prepared
  } catch (error) {
    await close()
    throw error
  }
}

/** Catalogues, plans and connections of the new side are made by the proxies while their clients go on. */
async function waitForProxies(options: CutoverOptions, client: HostClient): Promise<void> {
  const { gate, source, log } = options
  if (!gate.ready) return
  await adminQuery(client, announceSql)
  if (await gate.ready(source.name, READY_MS)) return
  log.warn('not all proxies are ready for the new side: the pause will be longer')
}

async function prepareFences(options: CutoverOptions): Promise<void> {
  const { source, plan, journal, clock, wayBack } = options
  const side = options.fenceSide ?? 'source'
  for (const shard of source.shards.keys()) {
    await journal.register({ kind: 'fence', side, shard, name: 'pgshard_fence' })
  }
  await prepareFence(source, plan, wayBack?.role ?? '', clock)
}

/** @throws RESHARD_PINNED */
async function refusePinned({ gate, source, endPinned }: CutoverOptions): Promise<void> {
  const pinned = (await gate.pinned?.(source.name)) ?? []
  if (pinned.length === 0) return
  if (endPinned) return gate.endPinned?.(source.name)
  const names = pinned
    .slice(0, 10)
    .map(({ proxy, id, user, why }) => `${id} at ${proxy} (${user}: ${why})`)
  throw engineError('RESHARD_PINNED', { count: pinned.length, clients: names.join(', ') })
}

/** What holds a lock that ours cannot share, and will not end by itself in a moment, is waited for as long as the budget. @throws RESHARD_BLOCKED */
async function waitForBlockers(options: CutoverOptions): Promise<void> {
  const { source, plan, clock, budgetMs } = options
  const untilMs = clock.monotonicMs() + budgetMs
  for (const shard of source.shards) {
    const client = await openShard(shard)
    try {
      for (;;) {
        const holders = await lockBlockers(client, plan)
        if (holders.length === 0) break
        if (clock.monotonicMs() > untilMs) {
          throw engineError('RESHARD_BLOCKED', {
            server: placeOf(shard),
            holders: holders.join(', '),
          })
        }
        await clock.sleep(100)
      }
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}

/** A batch up to its Sync that goes to several shards, cut so that each part speaks of one statement and one portal. */
import { engineError } from '../../errors/engine-error.js'
import type { Plan } from '../../plan/plan.js'
import { isNeutral } from '../state/apply-effects.js'
import type { BatchItem } from './batch.js'
import type { Step } from './batch-steps.js'

/** More than one portal is spoken of, or a statement is made behind one. */
export function isOfSeveral(steps: readonly Step[]): boolean {
  let portals = 0
  let outside: string | undefined
  for (const step of steps) {
    if (step.kind === 'bind') portals++
    else if (portals > 0 && (step.kind === 'parse' || step.kind === 'duplicate')) return true
    else if (shardOf(step) !== undefined) {
      const name = nameOf(step)
      if (name !== outside) portals++
      outside = name
    }
    if (portals > 1) return true
  }
  return false
}

/** What an earlier batch has made is where that went. */
export function plansOfPortals(steps: readonly Step[]): Plan[] {
  return steps.flatMap((step) => {
    const shard = shardOf(step)
    if (shard === undefined) return []
    const target = { kind: 'some', shards: [shard] } as const
    return [{ how: 'relay', target, role: 'any', reasons: ['the portal stands on one shard'] }]
  })
}

/** The portals that a batch binds, on `shard` or on several. @throws SESSION_CURSOR_EXISTS */
export function checkNames(steps: readonly Step[], shard?: number): void {
  for (const step of steps) {
    if (step.kind !== 'bind') continue
    const { taken, item } = step
    const isElsewhere = taken?.shard !== undefined && taken.shard !== shard
    if (isElsewhere || taken?.isSeveral)
      throw engineError('SESSION_CURSOR_EXISTS', { name: item.portal })
  }
}

const shardOf = (step: Step): number | undefined => ('shard' in step ? step.shard : undefined)

const nameOf = (step: Step): string | undefined => {
  if (step.kind === 'execute') return step.item.portal
  return step.kind === 'describe' || step.kind === 'close' ? step.item.name : undefined
}

/** How many messages at the head only close what no server needs to be told of. */
export function leadingCloses(steps: readonly Step[]): number {
  const first = steps.findIndex((step) => step.kind !== 'close' || step.shard !== undefined)
  return Math.max(first, 0)
}

/** A server that runs the step takes no snapshot for it: transactions, savepoints, settings. */
export const looksAtNothing = ({ statement }: Step): boolean =>
  statement === undefined || statement.planned.statements.every(isNeutral)

/** Parts in order. */
export function unitsOf(items: readonly BatchItem[]): BatchItem[][] {
  const units: BatchItem[][] = []
  let unit: BatchItem[] = []
  for (const item of items) {
    if (unit.length > 0 && beginsUnit(unit, item)) {
      units.push(unit)
      unit = []
    }
    unit.push(item)
  }
  if (unit.length > 0) units.push(unit)
  return units
}

function beginsUnit(unit: readonly BatchItem[], item: BatchItem): boolean {
  switch (item.kind) {
    case 'parse':
    case 'malformed':
      return true
    case 'bind':
      return portalOf(unit) !== undefined || speaksOfAnother(unit, item.statement)
    case 'describe':
      return item.what === 'S' ? speaksOfAnother(unit, item.name) : portalOf(unit) !== item.name
    case 'execute':
      return portalOf(unit) !== item.portal
    case 'close':
      return item.what === 'P' ? portalOf(unit) !== item.name : executes(unit)
  }
}

const executes = (unit: readonly BatchItem[]): boolean =>
  unit.some((item) => item.kind === 'execute')

const portalOf = (unit: readonly BatchItem[]): string | undefined => {
  const bind = unit.find((item) => item.kind === 'bind')
  return bind?.kind === 'bind' ? bind.portal : undefined
}

const speaksOfAnother = (unit: readonly BatchItem[], name: string): boolean =>
  unit.some((item) => {
    if (item.kind === 'parse') return item.name !== name
    if (item.kind === 'bind') return item.statement !== name
    return item.kind === 'describe' && item.what === 'S' && item.name !== name
  })

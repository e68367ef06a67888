/** A batch up to its Sync that goes to several shards, cut so that each part speaks of one statement and one portal. */
import { engineError } from '../../errors/engine-error.js'
import { isNeutral } from '../state/apply-effects.js'
import type { BatchItem } from './batch.js'
import type { Step } from './batch-steps.js'

/** More than one portal is bound. */
export function isOfSeveral(steps: readonly Step[]): boolean {
  let binds = 0
  for (const step of steps) if (step.kind === 'bind') binds++
  return binds > 1
}

/** A server that runs the step takes no snapshot for it: transactions, savepoints, settings. */
export const looksAtNothing = ({ statement }: Step): boolean =>
  statement === undefined || statement.planned.statements.every(isNeutral)

/** Parts in order. @throws SESSION_SEVERAL_SHARDS_IN_REQUEST when a portal is executed apart from its Bind */
export function unitsOf(items: readonly BatchItem[]): BatchItem[][] {
  const units: BatchItem[][] = []
  let unit: BatchItem[] = []
  for (const item of items) {
    if (unit.length > 0 && beginsUnit(unit, item)) {
      units.push(unit)
      unit = []
    }
    if (item.kind === 'execute' && portalOf(unit) !== item.portal) {
      throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
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
      return item.what === 'S' && speaksOfAnother(unit, item.name)
    default:
      return false
  }
}

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

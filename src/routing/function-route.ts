/** Statements that only call functions which the configuration gives a place: a shard, or that of the hash of an argument. */

import type { KeyType } from '../datum/key-type.js'
import { engineError } from '../errors/engine-error.js'
import type { Plan } from '../plan/plan.js'
import { type KeyPlacer, makeKeyPlacer } from '../sharding/key-placer.js'
import type { ShardId } from '../sharding/shard-set.js'
import type { CalledFunction, Statement } from '../sql/statement.js'
import { type Run, shardsOfValue } from './key-value.js'
import { planOrRefuse, type Role, refuse, relayTo } from './plans.js'

/** Where a function runs; the first of both that is there. */
export interface FunctionRoute {
  readonly schema?: string
  readonly name: string
  readonly shard?: ShardId
  /** From 1. */
  readonly hashArgument?: number
  readonly hashType?: KeyType
}

interface PlacedCall {
  readonly call: CalledFunction
  readonly route: FunctionRoute
  readonly placer: KeyPlacer | undefined
}

const sameSchema = (a: string | undefined, b: string | undefined) =>
  a === undefined || b === undefined || a === b

const placerOf = (route: FunctionRoute, shardCount: number): KeyPlacer | undefined =>
  route.hashArgument === undefined
    ? undefined
    : makeKeyPlacer({
        column: `argument ${route.hashArgument} of ${route.name}()`,
        keyType: route.hashType ?? 'bigint',
        placement: {
          kind: 'hash',
          hasher: 'postgres',
          buckets: shardCount,
          bucketMap: Array.from({ length: shardCount }, (_, shard) => shard),
        },
      })

/** Undefined: no function of the statement has a place, or it reads tables, which then decide. */
export function compileFunctionRoute(
  statement: Statement,
  routes: readonly FunctionRoute[],
  shardCount: number,
  role: Role,
): ((run: Run) => Plan) | undefined {
  const placed = (statement.calls ?? []).flatMap((call): PlacedCall[] => {
    const route = routes.find(
      (one) => one.name === call.name && sameSchema(one.schema, call.schema),
    )
    return route ? [{ call, route, placer: placerOf(route, shardCount) }] : []
  })
  const [first] = placed
  if (!first) return undefined
  return (run) =>
    planOrRefuse(() => {
      const shard = shardOf(first, run)
      for (const other of placed.slice(1))
        if (shardOf(other, run) !== shard)
          return refuse(
            engineError('ROUTE_FUNCTIONS_APART', {
              first: first.call.name,
              second: other.call.name,
            }),
          )
      return relayTo(shard, role, `function ${first.call.name}() runs there`)
    })
}

function shardOf({ call, route, placer }: PlacedCall, run: Run): ShardId {
  if (placer === undefined) return route.shard ?? 0
  const position = route.hashArgument as number
  const value = call.args[position - 1]
  const set = value && shardsOfValue(value, placer, run, 'store')
  if (set?.kind !== 'some' || set.shards.length !== 1)
    throw engineError('ROUTE_FUNCTION_ARGUMENT', { name: call.name, position })
  return set.shards[0] as ShardId
}

/** Making plans: frozen, and shared where they carry nothing of one run. */
import {
  type EngineError,
  engineError,
  isEngineError,
  toEngineError,
} from '../errors/engine-error.js'
import type { Plan } from '../plan/plan.js'
import { allShards, noShard, oneShard, type ShardId, type ShardSet } from '../sharding/shard-set.js'

export type Role = Plan['role']

/** Relay to one shard, made once for each shard, for one reason. */
export class RelayPlans {
  readonly #plans: Plan[] = []
  readonly #role: Role
  readonly #reasons: readonly string[]

  constructor(role: Role, reasons: readonly string[]) {
    this.#role = role
    this.#reasons = reasons
  }

  to(shard: ShardId): Plan {
    const known = this.#plans[shard]
    if (known) return known
    const made: Plan = {
      how: 'relay',
      target: oneShard(shard),
      role: this.#role,
      reasons: this.#reasons,
    }
    this.#plans[shard] = made
    return made
  }
}

export function relayAnywhere(role: Role, reason: string): Plan {
  return { how: 'relay', target: oneShard(0), role, anyShard: true, reasons: [reason] }
}

export function relayTo(shard: ShardId, role: Role, reason: string): Plan {
  return { how: 'relay', target: oneShard(shard), role, reasons: [reason] }
}

export function relayNowhere(role: Role, reason: string): Plan {
  return { how: 'relay', target: noShard, role, reasons: [reason] }
}

export function concatenateFrom(target: ShardSet, role: Role, reasons: readonly string[]): Plan {
  return { how: 'concatenate', target, role, reasons }
}

export function refuse(error: EngineError): Plan {
  return {
    how: 'refuse',
    target: allShards,
    role: 'primary',
    reasons: [error.message],
    error: {
      sqlstate: error.sqlstate,
      code: error.code,
      message: error.message,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    },
  }
}

/** `what` starts the message: “DISTINCT over several shards is not supported”. */
export function unsupported(what: string, advice: string): Plan {
  return refuse(engineError('ROUTE_UNSUPPORTED', { what, advice }))
}

/** Offline, of a way that hangs on the types of columns. */
export const untoldTypes =
  'the columns of its tables are not known here: serve, which reads them, may take another way'

export const pinAdvice =
  'give the sharding key of every sharded table a value in the WHERE clause, or name a shard with /* pgshard_shard: N */'
export const eachShardAdvice = 'run it on each shard with /* pgshard_shard: N */ before it'

/** Runs `make`; an error of ours that it throws becomes the plan that says so. */
export function planOrRefuse(make: () => Plan): Plan {
  try {
    return make()
  } catch (error) {
    if (isEngineError(error)) return refuse(error)
    throw toEngineError(error)
  }
}

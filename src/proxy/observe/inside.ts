/** What stands inside one process, for the console: prepared statements, plans, names, mirrors. */
import { createHash, randomBytes } from 'node:crypto'
import type { ProxyView } from '../../admin/proxy-view.js'
import type { NameCache } from '../../net/name-cache.js'
import type { Fleet } from '../fleet.js'
import type { InForce } from '../in-force.js'

export interface InsideSources {
  readonly fleet: Fleet | undefined
  readonly names: NameCache | undefined
  inForce(): InForce
}

export type InsideView = Pick<ProxyView, 'prepared' | 'plans' | 'names' | 'mirrors' | 'instanceId'>

export function insideView({ fleet, names, inForce }: InsideSources): InsideView {
  const worker = fleet?.number ?? 0
  return {
    instanceId: instanceIdOf(fleet?.keySecret),
    prepared: () =>
      [...inForce().knowledge].flatMap(([database, { statements }]) =>
        [...statements.all()].map(({ serverName, text, uses }) => ({
          ...{ worker, database, name: serverName, uses },
          text: Buffer.from(text, 'latin1').toString('utf8'),
          bytes: text.length,
        })),
      ),
    plans: () =>
      [...inForce().knowledge].flatMap(([database, { planner }]) =>
        [...(planner.kept?.() ?? [])].map((plan) => ({ worker, database, ...plan })),
      ),
    names: () => [...(names?.all() ?? [])].map((name) => ({ worker, ...name })),
    mirrors: () => [],
  }
}

/** The same in all processes of one `serve`, and no secret. */
function instanceIdOf(secret: Buffer = randomBytes(32)): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, 8)
}

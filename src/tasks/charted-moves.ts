/** Moves as the web page shows them: the newest with the charts of their guard's samples. Reads only. */
import type { MovesView, TaskView } from '../admin/move-control.js'
import { adminQuery } from '../pg/admin-query.js'
import { type MoveConfig, sideOf } from '../reshard/configured-side.js'
import { readSamples } from '../reshard/guards/sample-store.js'
import { moveCharts } from '../reshard/report/move-charts.js'
import { type ReshardSide, withShard } from '../reshard/side.js'
import { type KnownTask, readMoves } from './read-moves.js'

/** Samples of older ones are not read every few seconds. */
const CHARTED = 2
/** More points than a chart has pixels say nothing. */
const MOST_POINTS = 600

export async function readChartedMoves(config: MoveConfig): Promise<MovesView> {
  const moves = await readMoves(config)
  const newest = await Promise.all(
    moves.tasks.slice(0, CHARTED).map((task) => charted(config, task)),
  )
  return { ...moves, tasks: [...newest, ...moves.tasks.slice(CHARTED)] }
}

async function charted(config: MoveConfig, task: KnownTask): Promise<TaskView> {
  try {
    const side = sideOf(config, task.home)
    const [facts, samples] = [await readFacts(side, task.id), await readSamples(side, task.id)]
    const pauseMs = facts['write_pause_ms']
    return {
      ...task,
      ...(typeof pauseMs === 'number' ? { pauseMs } : {}),
      charts: moveCharts(thinned(samples), facts),
    }
  } catch {
    return task // its database cannot be asked now: what is known is shown
  }
}

async function readFacts(side: ReshardSide, run: string): Promise<Record<string, unknown>> {
  return withShard(side.shards[0] as ReshardSide['shards'][number], async (client) => {
    const query = `SELECT facts::text AS facts FROM pgshard.reshard_run WHERE run = $1`
    const [row] = await adminQuery(client, query, [run])
    return JSON.parse(row?.['facts'] ?? '{}') as Record<string, unknown>
  })
}

function thinned<T>(samples: readonly T[]): readonly T[] {
  const every = Math.ceil(samples.length / MOST_POINTS)
  return every <= 1
    ? samples
    : samples.filter((_, i) => i % every === 0 || i === samples.length - 1)
}

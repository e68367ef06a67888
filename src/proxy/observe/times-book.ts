/** The times of requests of each user on each database; they outlive reloads and the clients. */
import type { TimesView } from '../../admin/proxy-view.js'
import { RequestTimes } from '../../metrics/request-times.js'

export class TimesBook {
  readonly #known = new Map<string, { user: string; database: string; times: RequestTimes }>()

  of(user: string, database: string): RequestTimes {
    const key = JSON.stringify([user, database])
    const known = this.#known.get(key)
    if (known) return known.times
    const times = new RequestTimes()
    this.#known.set(key, { user, database, times })
    return times
  }

  rows(worker: number): TimesView[] {
    return [...this.#known.values()].flatMap(({ user, database, times }) =>
      [...times.all()].map(({ requestClass, shard, buckets }) => ({
        worker,
        user,
        database,
        requestClass,
        shard,
        counts: [...buckets.counts],
        sumMs: buckets.sumMs,
      })),
    )
  }
}

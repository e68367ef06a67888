/** Commands that hold until they are taken back: a worker that comes later has to hear them too. */
import type { Order } from './messages.js'

type Standing = Extract<Order, { verb: 'pause' | 'resume' | 'ban' | 'unban' }>

export class StandingOrders {
  #orders: Standing[] = []

  get all(): readonly Order[] {
    return this.#orders
  }

  /** Takes back what the order replaces, and keeps it as long as it may matter. */
  note(order: Order): void {
    const standing = asStanding(order)
    if (!standing) return
    const about = subjectOf(standing)
    const concernsAll = about.endsWith('{}')
    this.#orders = this.#orders.filter((older) => {
      const subject = subjectOf(older)
      return subject !== about && !(concernsAll && kindOf(subject) === kindOf(about))
    })
    const isNothing = concernsAll && (standing.verb === 'resume' || standing.verb === 'unban')
    if (!isNothing) this.#orders.push(standing)
  }

  /** What was refused everywhere does not hold. */
  forget(order: Order): void {
    const standing = asStanding(order)
    if (!standing) return
    const about = JSON.stringify(standing)
    this.#orders = this.#orders.filter((one) => JSON.stringify(one) !== about)
  }
}

/** KILL leaves its database paused: that is what stays of it. */
function asStanding(order: Order): Standing | undefined {
  if (order.verb === 'kill') return { verb: 'pause', pools: { database: order.database } }
  if (order.verb === 'reconnect' || order.verb === 'kill_client') return undefined
  return order
}

function subjectOf(order: Standing): string {
  if (order.verb === 'pause' || order.verb === 'resume') {
    const { user, database } = order.pools
    return `pause ${JSON.stringify({ user, database })}`
  }
  return `ban ${JSON.stringify('place' in order ? (order.place ?? {}) : {})}`
}

const kindOf = (subject: string): string => subject.split(' ')[0] as string

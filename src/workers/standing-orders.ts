/** Commands that hold until they are taken back: a worker that comes later has to hear them too. */
import type { Order } from './messages.js'

type Standing = Extract<
  Order,
  { verb: 'pause' | 'resume' | 'ban' | 'unban' | 'disable' | 'enable' | 'suspend' }
>

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
    const { verb } = standing
    const endsAll = concernsAll && (verb === 'resume' || verb === 'unban')
    const isNothing = verb === 'enable' || endsAll
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

const poolsOf = (database: string | undefined) => (database === undefined ? {} : { database })

/** KILL and MAINTENANCE leave databases paused: that is what stays of them. */
function asStanding(order: Order): Standing | undefined {
  switch (order.verb) {
    case 'kill':
      return { verb: 'pause', pools: poolsOf(order.database) }
    case 'maintenance':
      return { verb: order.isOn ? 'pause' : 'resume', pools: poolsOf(order.database) }
    case 'pause':
    case 'resume':
    case 'ban':
    case 'unban':
    case 'disable':
    case 'enable':
    case 'suspend':
      return order as Standing
    default:
      return undefined
  }
}

function subjectOf(order: Standing): string {
  if (order.verb === 'suspend') return 'pause {}'
  if (order.verb === 'disable' || order.verb === 'enable') return `database ${order.database}`
  if (order.verb === 'pause' || order.verb === 'resume') {
    const { user, database } = order.pools
    return `pause ${JSON.stringify({ user, database })}`
  }
  return `ban ${JSON.stringify('place' in order ? (order.place ?? {}) : {})}`
}

const kindOf = (subject: string): string => subject.split(' ')[0] as string

import { BaseCommand } from '../../src/cli/base-command.js'
import { configFlags } from '../../src/cli/flags.js'
import { haConfigOf } from '../../src/cli/ha-flags.js'
import { renderTable } from '../../src/cli/render.js'
import type { NodeStatus } from '../../src/ha/group-status.js'

export default class HaStatus extends BaseCommand {
  static override summary = 'Show where each HA group is routed, and how old its heartbeats are.'
  static override description =
    'Exit code 7 when a group is routed to a node that gives no heartbeat.'
  static override examples = ['<%= config.bin %> ha status', '<%= config.bin %> ha status --json']

  static override flags = { ...configFlags }

  async run(): Promise<object> {
    const { flags } = await this.parse(HaStatus)
    const plan = await haConfigOf(flags)
    const { groupStatus } = await import('../../src/ha/group-status.js')
    const { systemClock } = await import('../../src/base/clock.js')
    const groups = await groupStatus(plan, systemClock)
    const rows = groups.map((group) => [
      group.name,
      group.current,
      ...[group.primary, group.standby].flatMap((node) => [node.place, heartbeat(node)]),
      group.decision === 'stay' ? '' : group.decision.replaceAll('_', ' '),
    ])
    const head = ['group', 'route', 'primary', 'heartbeat', 'standby', 'heartbeat', 'next']
    this.log(renderTable(head, rows).trimEnd())
    if (groups.some((group) => !group[group.current].healthy)) process.exitCode = 7
    return { groups: groups.map(jsonOf) }
  }
}

const heartbeat = ({ ageMs, healthy }: NodeStatus): string =>
  ageMs === undefined ? 'never' : `${(ageMs / 1000).toFixed(1)} s ago${healthy ? '' : ' (failed)'}`

const jsonOf = (group: {
  id: number
  name: string
  current: string
  primary: NodeStatus
  standby: NodeStatus
  decision: string
}) => ({
  id: group.id,
  name: group.name,
  current: group.current,
  decision: group.decision,
  primary: nodeJson(group.primary),
  standby: nodeJson(group.standby),
})

const nodeJson = ({ place, hostId, ageMs, healthy }: NodeStatus) => ({
  place,
  host_id: hostId,
  age_ms: ageMs === undefined ? null : Math.round(ageMs),
  healthy,
})

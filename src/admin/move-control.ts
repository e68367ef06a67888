/** What the console may ask of moves between databases, and what it sees of them. Carried out elsewhere; plain data here. */
import type { ChartSpec } from '../report/chart-spec.js'
import type { MoveKind } from './parse-move.js'
import type { ProxyControl } from './proxy-control.js'

export interface MoveControl {
  /** Starts a task and gives its id, the name of the run. @throws ADMIN_TASK */
  begin(kind: MoveKind, from: string, to: string): Promise<string>
  /** Verifies and switches; without an id the one task that follows. @throws ADMIN_TASK, ADMIN_NO_SUCH */
  cutover(task: string | undefined): Promise<string>
  /** Lets the task end after what it is doing; it can be taken up again. @throws ADMIN_NO_SUCH */
  stop(task: string): Promise<void>
  /** Changes a limit of every task that is under way. @throws RESHARD_SETTING, ADMIN_NO_SUCH */
  set(name: string, value: string): Promise<void>
  look(): Promise<MovesView>
}

/** What the console is given: the proxy, and the moves of its databases. */
export interface ConsoleControl extends ProxyControl {
  readonly moves: MoveControl
}

export interface MovesView {
  readonly tasks: readonly TaskView[]
  readonly copies: readonly TableCopyView[]
  readonly slots: readonly SlotView[]
}

export interface TaskView {
  readonly id: string
  readonly from: string
  readonly to: string
  readonly state: string
  readonly step: string
  readonly startedAtMs: number
  readonly updatedAtMs: number
  readonly error: string | null
  /** How long its cutover held writes back, once it has. */
  readonly pauseMs?: number
  /** By name; only where they were asked for. */
  readonly charts?: Readonly<Record<string, ChartSpec>>
}

export interface TableCopyView {
  readonly task: string
  readonly schema: string
  readonly table: string
  readonly state: string
  readonly rows: number
  readonly bytes: number
  readonly totalBytes: number
  readonly elapsedMs: number
}

export interface SlotView {
  readonly task: string
  readonly host: string
  readonly port: number
  readonly database: string
  readonly name: string
  readonly lsn: string
  readonly lagBytes: number
  readonly isTemporary: boolean
}

/** Console commands about moves: RESHARD, COPY_DATA, REPLICATE, SCHEMA_SYNC, CUTOVER, STOP_TASK. Pure. */
import { engineError } from '../errors/engine-error.js'

/** A word of a statement. */
export interface Word {
  readonly text: string
  readonly isName: boolean
  readonly isQuoted: boolean
}

/** `schema_sync`: makes the tables; `copy_data` and `replicate`: copy and follow until CUTOVER; `reshard`: all of it. */
export type MoveKind = 'reshard' | 'schema_sync' | 'copy_data' | 'replicate'

export type MoveCommand =
  | { readonly kind: MoveKind; readonly from: string; readonly to: string }
  | { readonly kind: 'cutover'; readonly task: string | undefined }
  | { readonly kind: 'stop_task'; readonly task: string }
  | { readonly kind: 'set_move'; readonly name: string; readonly value: string }

const syntax = (reason: string) => engineError('ADMIN_SYNTAX', { reason })

function begin(kind: MoveKind): (rest: Word[]) => MoveCommand {
  const word = kind.toUpperCase()
  return (rest) => {
    const [from, to, more] = rest
    if (!from?.isName || !to?.isName) throw syntax(`expected ${word} source target`)
    if (more) {
      throw engineError('ADMIN_UNSUPPORTED', {
        command: `${word} with a publication or a slot`,
        instead: `pgshard makes its publications and slots itself, for all tables: ${word} ${from.text} ${to.text}`,
      })
    }
    return { kind, from: from.text, to: to.text }
  }
}

const schemaSync = (rest: Word[]): MoveCommand => {
  const [phase, ...names] = rest
  if (phase?.text === 'post' || phase?.text === 'cutover') {
    throw engineError('ADMIN_UNSUPPORTED', {
      command: `SCHEMA_SYNC ${phase.text.toUpperCase()}`,
      instead:
        phase.text === 'post'
          ? 'COPY_DATA makes keys and indexes after its copy'
          : 'CUTOVER sets the sequences',
    })
  }
  if (phase?.text !== 'pre') throw syntax('expected SCHEMA_SYNC PRE source target')
  return begin('schema_sync')(names)
}

export const moveParsers: Readonly<Record<string, (rest: Word[]) => MoveCommand>> = {
  reshard: begin('reshard'),
  copy_data: begin('copy_data'),
  replicate: begin('replicate'),
  schema_sync: schemaSync,
  cutover: (rest) => {
    const [task, more] = rest
    if (more) throw syntax('expected CUTOVER [task id]')
    return { kind: 'cutover', task: task?.text }
  },
  stop_task: (rest) => {
    const [task, more] = rest
    if (!task?.isName || more) throw syntax('expected STOP_TASK task id')
    return { kind: 'stop_task', task: task.text }
  },
}

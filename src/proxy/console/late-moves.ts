/** Moves of the console, loaded when the first one is asked for: few proxies ever move anything. */
import type { ConsoleControl, MoveControl } from '../../admin/move-control.js'
import type { ProxyControl } from '../../admin/proxy-control.js'
import type { MovesOptions } from '../../tasks/moves.js'

export const withMoves = (control: ProxyControl, options: MovesOptions): ConsoleControl => ({
  ...control,
  moves: lateMoves(options),
})

function lateMoves(options: MovesOptions): MoveControl {
  let loading: Promise<MoveControl> | undefined
  const moves = (): Promise<MoveControl> => {
    loading ??= import('../../tasks/moves.js').then(({ makeMoves }) => makeMoves(options))
    return loading
  }
  return {
    begin: async (kind, from, to) => (await moves()).begin(kind, from, to),
    cutover: async (task) => (await moves()).cutover(task),
    stop: async (task) => (await moves()).stop(task),
    set: async (name, value) => (await moves()).set(name, value),
    look: async () => (await moves()).look(),
  }
}

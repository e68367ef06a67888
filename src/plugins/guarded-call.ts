/**
 * Calls a function that may never return. The time limit of a `vm` script holds for everything that runs beneath it, the
 * plugin's code too; it costs about 0.1 ms a call, because Node starts a thread that watches.
 */
import { createContext, Script } from 'node:vm'

/** Runs `work` for at most `limitMs` (0: for as long as it takes). @throws what `work` throws; an error of code ERR_SCRIPT_EXECUTION_TIMEOUT */
export type GuardedCall = <T>(work: () => T, limitMs: number) => T

export function makeGuardedCall(): GuardedCall {
  const sandbox: { run?: () => void } = {}
  const context = createContext(sandbox)
  const script = new Script('run()')
  return (work, limitMs) => {
    if (limitMs === 0) return work()
    let result: { value: ReturnType<typeof work> } | undefined
    sandbox.run = () => {
      result = { value: work() }
    }
    script.runInContext(context, { timeout: limitMs })
    return (result as unknown as { value: ReturnType<typeof work> }).value
  }
}

export const isTimeout = (error: unknown): boolean =>
  (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'

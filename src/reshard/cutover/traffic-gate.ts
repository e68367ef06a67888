/**
 * The door between a cutover and the proxies that serve the old side: stop traffic, read the configuration again, go on.
 * The engine knows only this; `console-gate.ts` does it through a proxy's console.
 */

export interface TrafficGate {
  /** Checks that the proxy can be reached, and keeps the way to it open. */
  open(): Promise<void>
  /** Resolves when no statement of the database runs and none will start. Rejects after `timeoutMs`. */
  pause(database: string, timeoutMs: number): Promise<void>
  /** Makes the proxy read its configuration again. Rejects when it refused or was not reached. */
  reload(): Promise<void>
  resume(database: string): Promise<void>
  close(): Promise<void>
}

/** For a configuration that no proxy serves: nothing to stop, nothing to reload. */
export const noGate: TrafficGate = {
  open: async () => undefined,
  pause: async () => undefined,
  reload: async () => undefined,
  resume: async () => undefined,
  close: async () => undefined,
}

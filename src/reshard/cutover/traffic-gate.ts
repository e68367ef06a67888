/**
 * The door between a cutover and the proxies that serve the old side: stop traffic, read the configuration again, go on.
 * The engine knows only this; `console-gate.ts` does it through a proxy's console.
 */

/** A client that keeps its server: a cutover would wait for it. */
export interface PinnedClient {
  /** Its console. */
  readonly proxy: string
  readonly id: number
  readonly user: string
  /** As SHOW CLIENTS says. */
  readonly why: string
}

export interface TrafficGate {
  /** Checks that the proxy can be reached, and keeps the way to it open. */
  open(): Promise<void>
  /** Resolves when no statement of the database runs and none will start. Rejects after `timeoutMs`. */
  pause(database: string, timeoutMs: number): Promise<void>
  /** Makes the proxy read its configuration again. Rejects when it refused or was not reached. */
  reload(): Promise<void>
  resume(database: string): Promise<void>
  /** Waits until the proxies have made ready what is about to take over from a database; false: not all have, in time. */
  ready?(database: string, timeoutMs: number): Promise<boolean>
  /** Instead of `reload` and `resume`, for proxies that follow the epoch by themselves: goes on, on the side that serves now. */
  follow?(database: string): Promise<void>
  /** Behind the fence: refuses when somebody has come who was not paused. Absent: nobody can come. */
  confirm?(): Promise<void>
  close(): Promise<void>
  /** Clients that keep their servers; absent: this gate has none. */
  pinned?(database: string): Promise<readonly PinnedClient[]>
  endPinned?(database: string): Promise<void>
}

/** For a configuration that no proxy serves: nothing to stop, nothing to reload. */
export const noGate: TrafficGate = {
  open: async () => undefined,
  pause: async () => undefined,
  reload: async () => undefined,
  resume: async () => undefined,
  close: async () => undefined,
}

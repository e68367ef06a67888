/** What the console has ordered and not taken back, beside PAUSE and bans, which the pools keep. */
export interface Standing {
  /** After SUSPEND, until RESUME. */
  isSuspended: boolean
  /** Databases that take no new clients. */
  readonly disabled: Set<string>
}

export const noStanding = (): Standing => ({ isSuspended: false, disabled: new Set() })

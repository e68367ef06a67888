/** Who may see the page: whoever brings the token once, and then a cookie that no script can read. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** In constant time, whatever the lengths. */
const areEqual = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b))

export const makeToken = (): string => randomBytes(24).toString('base64url')

export class WebAccess {
  readonly #token: string
  /** Another secret than the token, which so is not kept by browsers. */
  readonly #session = randomBytes(32).toString('base64url')

  constructor(token: string) {
    this.#token = token
  }

  isToken(offered: unknown): boolean {
    return typeof offered === 'string' && areEqual(offered, this.#token)
  }

  /** By a cookie of this start, or `Authorization: Bearer TOKEN`. */
  isKnown(
    headers: { readonly cookie?: string | undefined; readonly authorization?: string | undefined },
    port: number,
  ): boolean {
    const bearer = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1]
    if (bearer !== undefined && this.isToken(bearer)) return true
    const name = `${cookieName(port)}=`
    return (headers.cookie ?? '')
      .split(/;\s*/)
      .some((pair) => pair.startsWith(name) && areEqual(pair.slice(name.length), this.#session))
  }

  /** For Set-Cookie. Ports of one host share their cookies, so that the name has the port. */
  cookie(port: number): string {
    return `${cookieName(port)}=${this.#session}; Path=/; HttpOnly; SameSite=Strict`
  }
}

const cookieName = (port: number): string => `pgshard_${port}`

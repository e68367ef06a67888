/**
 * md5 authentication, both sides.
 *
 *   "md5" + hex(md5(hex(md5(password + user)) + salt))
 *
 * @see `pg_md5_encrypt` in `src/common/md5_common.c`
 */
import { createHash, timingSafeEqual } from 'node:crypto'

const md5 = (...parts: (string | Uint8Array)[]): string => {
  const hash = createHash('md5')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

/** What PostgreSQL stores: `md5` and 32 hex digits. */
export function md5Hash(user: string, password: string): string {
  return `md5${md5(password, user)}`
}

export function isMd5Hash(secret: string): boolean {
  return /^md5[0-9a-f]{32}$/.test(secret)
}

/** The answer to AuthenticationMD5Password; `secret` is the password or its stored md5 form. */
export function md5Password(user: string, secret: string, salt: Uint8Array): string {
  const hash = isMd5Hash(secret) ? secret : md5Hash(user, secret)
  return `md5${md5(hash.slice(3), salt)}`
}

/** Whether `answer` proves one of the secrets (clear or md5 form; SCRAM verifiers cannot be checked so). Always tries all. */
export function md5Proves(
  user: string,
  secrets: readonly string[],
  salt: Uint8Array,
  answer: string,
): boolean {
  let proved = false
  for (const secret of secrets) {
    if (equalTexts(md5Password(user, secret, salt), answer)) proved = true
  }
  return proved
}

/** In a time that does not depend on where the texts differ. */
export function equalTexts(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(a), hash(b))
}

/** A password sent in clear, held against what is stored of it: clear text, md5 form or SCRAM verifier. */
import { timingSafeEqual } from 'node:crypto'
import { equalTexts, isMd5Hash, md5Hash } from './md5.js'
import { saslprep } from './saslprep.js'
import { parseScramVerifier, scramKeys } from './scram-verifier.js'

/** Always tries all secrets. An empty password is never right, as in PostgreSQL. */
export async function passwordMatches(
  user: string,
  secrets: readonly string[],
  password: string,
): Promise<boolean> {
  let matches = false
  for (const secret of secrets) if (await matchesOne(user, secret, password)) matches = true
  return matches && password !== ''
}

async function matchesOne(user: string, secret: string, password: string): Promise<boolean> {
  const verifier = parseScramVerifier(secret)
  if (verifier) {
    const keys = await scramKeys(password, verifier.salt, verifier.iterations)
    return timingSafeEqual(keys.serverKey, verifier.serverKey)
  }
  if (isMd5Hash(secret)) return equalTexts(md5Hash(user, password), secret)
  return equalTexts(secret, password) || equalTexts(saslprep(secret), saslprep(password))
}

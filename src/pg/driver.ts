/**
 * node-postgres, loaded without fetch. To find out whether it runs in a Cloudflare worker it makes a Response where there is no
 * `navigator` (Node 20), and that loads undici: a tenth of the start of a command. Node 21 and later have a `navigator`.
 */
import { createRequire } from 'node:module'
import type pg from 'pg'

function load(): typeof pg {
  const require = createRequire(import.meta.url)
  if ('navigator' in globalThis) return require('pg') as typeof pg
  const scope = globalThis as { navigator?: { readonly userAgent: string } }
  scope.navigator = { userAgent: `Node.js/${process.versions.node}` }
  try {
    return require('pg') as typeof pg
  } finally {
    delete scope.navigator
  }
}

export const driver = load()

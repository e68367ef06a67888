/** Reads the commands that change what the proxy does: databases, hosts, caches, settings. Pure. */
import { engineError } from '../errors/engine-error.js'
import type { Word } from './parse-move.js'

export type ControlCommand =
  | { readonly kind: 'healthcheck'; readonly poolId: number | undefined }
  | {
      readonly kind: 'maintenance'
      readonly isOn: boolean
      readonly database: string | undefined
    }
  | { readonly kind: 'suspend' | 'force_reload' }
  | { readonly kind: 'wait_close' | 'kill'; readonly database: string | undefined }
  | { readonly kind: 'disable' | 'enable'; readonly database: string }
  | { readonly kind: 'reset'; readonly what: 'prepared' | 'query_cache' }
  | { readonly kind: 'probe'; readonly url: string }
  | { readonly kind: 'set_config'; readonly name: string; readonly value: string }

export function nothingBehind(rest: readonly Word[]): void {
  if (rest.length > 0)
    throw engineError('ADMIN_SYNTAX', { reason: `unexpected "${rest[0]?.text}"` })
}

/** The id of SHOW POOLS, when there is one. */
export function poolIdOf(command: string, rest: readonly Word[]): number | undefined {
  const [word, ...more] = rest
  nothingBehind(more)
  if (!word) return undefined
  if (/^\d{1,15}$/.test(word.text)) return Number(word.text)
  throw engineError('ADMIN_SYNTAX', { reason: `${command} takes an id of SHOW POOLS` })
}

function databaseOf(command: string, rest: readonly Word[]): string | undefined {
  const [word, ...more] = rest
  nothingBehind(more)
  if (word && !word.isName)
    throw engineError('ADMIN_SYNTAX', { reason: `${command} takes a database` })
  return word?.text
}

function namedDatabase(command: string, rest: readonly Word[]): string {
  const name = databaseOf(command, rest)
  if (name === undefined)
    throw engineError('ADMIN_SYNTAX', { reason: `${command} needs a database` })
  return name
}

function maintenance(rest: readonly Word[]): ControlCommand {
  const [word, ...more] = rest
  if (word?.text !== 'on' && word?.text !== 'off')
    throw engineError('ADMIN_SYNTAX', { reason: 'expected MAINTENANCE ON or MAINTENANCE OFF' })
  const database = databaseOf('MAINTENANCE', more)
  return { kind: 'maintenance', isOn: word.text === 'on', database }
}

const alone =
  (kind: 'suspend' | 'force_reload') =>
  (rest: readonly Word[]): ControlCommand => {
    nothingBehind(rest)
    return { kind }
  }

export const controlParsers: Readonly<Record<string, (rest: Word[]) => ControlCommand>> = {
  healthcheck: (rest) => ({ kind: 'healthcheck', poolId: poolIdOf('HEALTHCHECK', rest) }),
  maintenance,
  suspend: alone('suspend'),
  force_reload: alone('force_reload'),
  wait_close: (rest) => ({ kind: 'wait_close', database: databaseOf('WAIT_CLOSE', rest) }),
  kill: (rest) => ({ kind: 'kill', database: databaseOf('KILL', rest) }),
  disable: (rest) => ({ kind: 'disable', database: namedDatabase('DISABLE', rest) }),
  enable: (rest) => ({ kind: 'enable', database: namedDatabase('ENABLE', rest) }),
}

/** PROBE takes a URL, whose signs are no words. */
export function parseProbe(sql: string): ControlCommand | undefined {
  const match = /^\s*probe\s+(\S+?)\s*;?\s*$/i.exec(sql)
  const url = match?.[1]
  return url === undefined ? undefined : { kind: 'probe', url: url.replace(/^'(.*)'$/, '$1') }
}

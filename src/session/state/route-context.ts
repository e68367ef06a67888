/** What routing may know of a session: hints, search_path, parameter types. */
import type { RouteContext } from '../../plan/plan.js'
import { rawSettingText, type Settings } from '../../server/settings.js'
import { unquote } from '../sql-literal.js'
import { type PortalNames, shardOfPortal } from './cursors.js'

interface Routed extends PortalNames {
  readonly transaction: PortalNames['transaction'] & { readonly effective: Settings }
  readonly held: { readonly temporary: ReadonlyMap<string, number> }
  readonly access: { readonly defaultSearchPath: readonly string[] }
}

const known = new WeakMap<Settings, Omit<RouteContext, 'parameterTypes' | 'temporary'>>()

/** `namesCursor`: where cursors stand will be asked. */
export function routeContextOf(
  core: Routed,
  parameterTypes?: readonly number[],
  namesCursor = false,
): RouteContext {
  const settings = core.transaction.effective
  let context = known.get(settings)
  if (!context) {
    context = {
      ...manualOf(settings),
      searchPath: searchPathOf(settings) ?? core.access.defaultSearchPath,
    }
    known.set(settings, context)
  }
  const { temporary } = core.held
  if (parameterTypes === undefined && temporary.size === 0 && !namesCursor) return context
  return {
    ...context,
    ...(parameterTypes === undefined ? {} : { parameterTypes }),
    ...(temporary.size === 0 ? {} : { temporary }),
    ...(namesCursor ? { cursors: { shardOf: (name: string) => shardOfPortal(core, name) } } : {}),
  }
}

function manualOf(settings: Settings): { manual?: NonNullable<RouteContext['manual']> } {
  const hint = (name: string): string | undefined => {
    const value = settings.values.get(`pgshard.${name}`) ?? settings.values.get(`pgdog.${name}`)
    return value === undefined ? undefined : unquote(value)
  }
  const shard = hint('shard')
  const shardingKey = hint('sharding_key')
  const role = hint('role')
  if (shard === undefined && shardingKey === undefined && role === undefined) return {}
  return {
    manual: {
      ...(shard === undefined ? {} : { shard: Number(shard) }),
      ...(shardingKey === undefined ? {} : { shardingKey }),
      ...(role === 'primary' || role === 'replica' ? { role } : {}),
    },
  }
}

/** The schemas of a search_path value: words folded, quoted names as they stand. */
function searchPathOf(settings: Settings): string[] | undefined {
  const value = settings.values.get('search_path')
  if (value === undefined) return undefined
  const items =
    (rawSettingText(value) ?? value).match(/"(?:[^"]|"")*"|E?'(?:[^']|'')*'|[^,\s]+/gi) ?? []
  return items.flatMap((item) => {
    if (item.startsWith('"')) return [item.slice(1, -1).replaceAll('""', '"')]
    // one literal holds one name, unless it came whole from a startup packet
    if (item.includes("'"))
      return unquote(item)
        .split(',')
        .map((part) => part.trim().replaceAll('"', ''))
    return [item.toLowerCase()]
  })
}

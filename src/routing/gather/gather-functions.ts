/** What a statement may call when it finishes over copies of its tables (hard-parts §6). */
import { oneServersFunctions } from '../../catalog/hidden-code.js'
import { volatileBuiltins } from '../../sql/builtin-functions.js'
import { isBuiltin } from '../../sql/describe-statement.js'
import type { FunctionUse, Statement } from '../../sql/statement.js'
import { foreignOperator, isForeign, isHarmlessForeign } from '../effects.js'
import type { RoutingWorld } from '../world.js'

/** Named pg_, yet they look at their arguments only. */
const plainPg = new Set(
  'pg_typeof pg_size_pretty pg_size_bytes pg_char_to_encoding pg_encoding_to_char pg_client_encoding pg_input_is_valid pg_input_error_info pg_snapshot_xmin pg_snapshot_xmax'.split(
    ' ',
  ),
)

/** Look at catalogs, where a copy is another table, or at the server itself. */
const catalogReaders =
  /^(?:pg_|has_.*_privilege$|to_reg|reg.*(?:in|out)$|current_schemas$|row_security_active$|inet_(?:client|server)_|txid_|version$|obj_description$|col_description$|shobj_description$|format_type$|icu_unicode_version$|(?:query|table|schema|database|cursor)_to_xml|ts_stat$|currtid|statement_timestamp$|acl|makeaclitem$)/

function isAllowed(call: FunctionUse, world: RoutingWorld): boolean {
  if (world.gather?.functions.has(call.name)) return true
  if (isForeign(call, world)) return isHarmlessForeign(call, world)
  if (!isBuiltin(call) || volatileBuiltins.has(call.name)) return false
  if (oneServersFunctions.test(call.name)) return false
  return plainPg.has(call.name) || !catalogReaders.test(call.name)
}

/** The first call that is not; undefined: all are. */
export function forbiddenCall(statement: Statement, world: RoutingWorld): string | undefined {
  const call = statement.functions.find((one) => !isAllowed(one, world))
  if (call) return `function ${call.name}()`
  const operator = foreignOperator(statement, world)
  if (operator) return `operator ${operator.name}`
  const attribute = statement.attributes.find(
    (name) => (world.catalog?.functionsNamed(name).length ?? 0) > 0 && !isAllowed({ name }, world),
  )
  if (attribute !== undefined) return `function ${attribute}()`
  const type = statement.typeNames.find((name) => /^reg/.test(name))
  return type === undefined ? undefined : `a cast to ${type}`
}

/**
 * Code that a SELECT can run without naming it: in views, policies, domains, casts, and operators of users. Statement
 * pipelining asks; what is not known here counts as code that may do anything.
 */

export interface HiddenCode {
  /** Oids of views and tables whose definition or policies call more than harmless functions of PostgreSQL's own. */
  readonly relations: ReadonlySet<number>
  /** Names of domains, whose checks may call anything. */
  readonly domains: ReadonlySet<string>
  /** Names of operators that are functions in a language of users. */
  readonly operators: ReadonlySet<string>
  /** Casts or orderings of users call such functions: any expression may. */
  readonly everywhere: boolean
}

/**
 * Called stable, yet their answer is one server's, or they read any table by its name. Beside the volatile ones they
 * are what makes a statement more than a read that any server may repeat.
 */
export const oneServersFunctions =
  /^(?:(?:query|table|schema|database|cursor)_to_xml|ts_stat$|pg_backend_pid$|txid_|pg_current_xact|pg_current_snapshot|pg_listening_channels|pg_my_temp_schema|pg_cursor$|pg_prepared_statement$|pg_stat_get_|inet_(?:client|server)_|pg_blocking_pids|pg_lock_status)/

/** True for functions (p) that come with PostgreSQL, or are compiled ones that it may call at plan time. */
const isNative = `(p.oid < 16384 OR (p.provolatile = 'i' AND p.prolang IN
  (SELECT l.oid FROM pg_catalog.pg_language l WHERE l.lanname IN ('internal', 'c'))))`

/** True for functions (p) that a statement run twice may not call. */
const isHidden = `(p.provolatile = 'v' OR NOT ${isNative} OR p.proname ~ '${oneServersFunctions.source}')`

/** The functions that a stored expression calls; pg_node_tree writes them as `:funcid 1299`. */
const calls = (tree: string): string => `(${tree} LIKE '%{COERCETODOMAIN%' OR EXISTS (
  SELECT 1 FROM pg_catalog.regexp_matches(${tree}, ':(?:funcid|opfuncid|aggfnoid|winfnoid|tsmhandler) (\\d+)', 'g') AS m(found)
  JOIN pg_catalog.pg_proc p ON p.oid = m.found[1]::pg_catalog.oid WHERE ${isHidden}))`

const hiddenCodeSql = `
SELECT 'relation', r.ev_class::text FROM pg_catalog.pg_rewrite r
WHERE r.rulename = '_RETURN' AND r.oid >= 16384 AND ${calls('r.ev_action::text')}
UNION ALL
SELECT 'relation', o.polrelid::text FROM pg_catalog.pg_policy o
WHERE o.polqual::text LIKE '%{SUBLINK%' OR ${calls('o.polqual::text')}
UNION ALL
SELECT 'domain', t.typname FROM pg_catalog.pg_type t WHERE t.typtype = 'd' AND t.oid >= 16384
UNION ALL
SELECT 'operator', o.oprname FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
WHERE o.oid >= 16384 AND NOT ${isNative}
UNION ALL
SELECT 'everywhere', '' WHERE EXISTS (
  SELECT 1 FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_proc p ON p.oid = c.castfunc WHERE c.oid >= 16384 AND NOT ${isNative})
OR EXISTS (
  SELECT 1 FROM pg_catalog.pg_amproc a JOIN pg_catalog.pg_proc p ON p.oid = a.amproc WHERE a.oid >= 16384 AND NOT ${isNative})`

/** Operators that PostgreSQL looks for by itself, in IN, BETWEEN, ORDER BY, USING and their like. */
const implied = ['=', '<>', '<', '<=', '>', '>=', '~~']

/** One statement. */
export async function readHiddenCode(
  query: (sql: string) => Promise<readonly (readonly (string | null)[])[]>,
): Promise<HiddenCode> {
  const found = new Map<string, string[]>()
  for (const [kind, value] of await query(hiddenCodeSql)) {
    found.set(kind!, [...(found.get(kind!) ?? []), value ?? ''])
  }
  const operators = new Set(found.get('operator'))
  return {
    relations: new Set((found.get('relation') ?? []).map(Number)),
    domains: new Set(found.get('domain')),
    operators,
    everywhere: found.has('everywhere') || implied.some((name) => operators.has(name)),
  }
}

/** The three scripts that are built in, by name and by unambiguous prefix. Statements are those of pgbench, so that results compare. */
import { engineError } from '../../errors/engine-error.js'

export interface BuiltinScript {
  readonly name: string
  readonly title: string
  readonly text: string
}

const setAid = '\\set aid random(1, 100000 * :scale)\n'
const setRest = `\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
`
const account = `UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
`
const tellerAndBranch = `UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
`
const history =
  'INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n'

export const builtinScripts: readonly BuiltinScript[] = [
  {
    name: 'tpcb-like',
    title: '<builtin: TPC-B (sort of)>',
    text: `${setAid}${setRest}BEGIN;\n${account}${tellerAndBranch}${history}END;\n`,
  },
  {
    name: 'simple-update',
    title: '<builtin: simple update>',
    text: `${setAid}${setRest}BEGIN;\n${account}${history}END;\n`,
  },
  {
    name: 'select-only',
    title: '<builtin: select only>',
    text: `${setAid}SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n`,
  },
]

/** The one whose name starts with `prefix`. */
export function findBuiltin(prefix: string): BuiltinScript {
  const found = builtinScripts.filter((script) => script.name.startsWith(prefix))
  const [only] = found
  if (only !== undefined && found.length === 1) return only
  const names = builtinScripts.map((script) => script.name).join(', ')
  const message =
    found.length === 0
      ? `no builtin script found for name "${prefix}"`
      : `ambiguous builtin name: ${found.length} builtin scripts found for prefix "${prefix}"`
  throw engineError('BENCH_USAGE', { message }, { hint: `use one of ${names}` })
}

/** "name@3" → name and weight; without "@" the weight is 1. */
export function splitWeight(option: string): { name: string; weight: number } {
  const at = option.lastIndexOf('@')
  if (at < 0) return { name: option, weight: 1 }
  const text = option.slice(at + 1)
  const weight = Number(text)
  if (!/^\s*\+?\d+$/.test(text) || weight > 2147483647)
    throw engineError('BENCH_USAGE', { message: `invalid weight specification: @${text}` })
  return { name: option.slice(0, at), weight }
}

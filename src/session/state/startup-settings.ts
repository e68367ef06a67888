/**
 * The parameters of a startup packet as settings: everything but user, database and their kin sets a session parameter,
 * and `options` holds `-c name=value` and `--name=value`.
 * @see PostgreSQL documentation, StartupMessage; `process_postgres_switches` in `src/backend/tcop/postgres.c`
 */
import { engineError } from '../../errors/engine-error.js'
import { quoteLiteral, rawSetting, Settings } from '../../server/settings.js'

const NOT_SETTINGS = new Set(['user', 'database', 'options', 'replication'])

/** Lists whose items are names: SET would take a literal for one name. */
const NAME_LISTS = new Set([
  'search_path',
  'temp_tablespaces',
  'local_preload_libraries',
  'session_preload_libraries',
])

/**
 * Settings that differ from what the server reports by itself.
 * @throws LOGIN_OPTION for options that are not parameters
 */
export function startupSettings(
  parameters: ReadonlyMap<string, string>,
  serverDefaults: ReadonlyMap<string, string>,
): Settings {
  const defaults = new Map([...serverDefaults].map(([name, value]) => [name.toLowerCase(), value]))
  const values = new Map<string, string>()
  const set = (name: string, value: string): void => {
    const key = name.toLowerCase()
    if (defaults.get(key) === value) values.delete(key)
    else values.set(key, settingLiteral(key, value))
  }
  for (const [name, value] of optionSettings(parameters.get('options') ?? '')) set(name, value)
  for (const [name, value] of parameters) {
    if (!NOT_SETTINGS.has(name) && !name.startsWith('_pq_.')) set(name, value)
  }
  return Settings.of(values)
}

const settingLiteral = (name: string, value: string): string =>
  NAME_LISTS.has(name) ? rawSetting(value) : quoteLiteral(value)

/** `-c a=b -cA=b --c-d=e`; a backslash makes the next character, also a space, part of the word. */
function* optionSettings(options: string): Generator<[string, string]> {
  const words = splitOptions(options)
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const assignment = word === '-c' ? words.shift() : /^(?:-c|--)(.*)$/s.exec(word)?.[1]
    const equals = assignment?.indexOf('=') ?? -1
    if (assignment === undefined || equals < 1) throw engineError('LOGIN_OPTION', { option: word })
    yield [assignment.slice(0, equals).replaceAll('-', '_'), assignment.slice(equals + 1)]
  }
}

function splitOptions(options: string): string[] {
  const words = options.match(/(?:\\.|[^\s\\])+/gs) ?? []
  return words.map((word) => word.replace(/\\(.)/gs, '$1'))
}

/** hba and hba_file → rules. */
import { type HbaRule, parseHba } from '../../auth/hba.js'
import { isEngineError } from '../../errors/engine-error.js'
import type { Entry } from '../keys/check-section.js'
import type { GeneralConfig } from '../keys/config-sections.js'
import type { Place, Problems } from '../problems.js'
import { readText } from '../read-toml.js'

/** Undefined: none are written, auth_type is for everybody. An empty file lets nobody in. */
export function compileHba(
  general: GeneralConfig,
  written: Entry | undefined,
  problems: Problems,
): readonly HbaRule[] | undefined {
  const { hba, hbaFile } = general
  const place = (key: string): Place => written?.placeOf(key) ?? { file: 'environment' }
  if (hbaFile === undefined) {
    if (hba.length === 0) return undefined
    return readRules(hba, problems, (line) => ({
      place: place('hba'),
      prefix: `hba, rule ${line}: `,
    }))
  }
  if (hba.length > 0) problems.error(place('hba_file'), 'hba and hba_file are one thing; keep one')
  try {
    const lines = readText(hbaFile).split(/\r?\n/)
    return readRules(lines, problems, (line) => ({ place: { file: hbaFile, line }, prefix: '' }))
  } catch (error) {
    if (!isEngineError(error)) throw error
    problems.error(place('hba_file'), error.message)
    return []
  }
}

function readRules(
  lines: readonly string[],
  problems: Problems,
  locate: (line: number) => { place: Place; prefix: string },
): readonly HbaRule[] {
  const { rules, problems: found } = parseHba(lines)
  for (const { line, message } of found) {
    const { place, prefix } = locate(line)
    problems.error(place, `${prefix}${message}`)
  }
  return rules
}

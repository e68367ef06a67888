/** `pgshard config show`: every key with its value and where that comes from; secrets hidden. */
import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configFlags, configOptions } from '../../src/cli/flags.js'
import { renderTable } from '../../src/cli/render.js'
import type { ShownSection, ShownValue } from '../../src/config/loaded-config.js'

export default class ConfigShow extends BaseCommand {
  static override summary =
    'Show every key of the configuration, its value and where that comes from.'
  static override examples = [
    '<%= config.bin %> config show --config pgdog.toml',
    '<%= config.bin %> config show --changed',
    '<%= config.bin %> config show --section general --json',
  ]

  static override flags = {
    ...configFlags,
    section: Flags.string({ description: 'only this section', helpValue: 'NAME' }),
    changed: Flags.boolean({ description: 'only what is not a default' }),
  }

  async run(): Promise<{ sections: readonly ShownSection[] }> {
    const { flags } = await this.parse(ConfigShow)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { shown } = loadConfig(configOptions(flags))
    const sections = shown
      .filter(({ section }) => flags.section === undefined || section === flags.section)
      .map((one) => ({
        ...one,
        keys: one.keys.filter(({ source }) => !flags.changed || source !== 'default'),
      }))
      .filter(({ keys }) => keys.length > 0)
    const rows = sections.flatMap(({ section, index, keys }) =>
      keys.map(({ key, value, source }) => {
        const place = index === undefined ? section : `${section}[${index}]`
        return [`${place}.${key}`, showValue(value), source]
      }),
    )
    this.log(renderTable(['key', 'value', 'from'], rows).trimEnd())
    return { sections }
  }
}

function showValue(value: ShownValue): string {
  if (value === null) return 'none'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

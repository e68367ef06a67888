/** [[plugins]]: names that differ, modules that are there. */
import { existsSync } from 'node:fs'
import { type Entry, withDefaults } from '../keys/check-section.js'
import { pluginKeys } from '../keys/config-keys-sections.js'
import type { PluginConfig } from '../loaded-config.js'
import type { Problems } from '../problems.js'

/** What PgDog loads: `lib<name>.so`, `<name>.dylib`. */
const native = /\.(?:so|dylib|dll)(?:\.\d+)*$/

export function compilePlugins(
  entries: readonly Entry[],
  problems: Problems,
): readonly PluginConfig[] {
  const seen = new Set<string>()
  return entries.flatMap((entry) => {
    const { name, module, config, timeoutMs } = withDefaults(pluginKeys, entry.values)
    if (name === undefined) return []
    if (seen.has(name)) problems.error(entry.placeOf('name'), `plugin "${name}" is there twice`)
    seen.add(name)
    if (native.test(module ?? name))
      problems.error(
        entry.placeOf(module === undefined ? 'name' : 'module'),
        `"${module ?? name}" is a native library; plugins here are ES modules (docs/plugins.md)`,
      )
    else if (module !== undefined && !existsSync(module))
      problems.error(entry.placeOf('module'), `there is no file "${module}"`)
    return { name, module, config, timeoutMs }
  })
}

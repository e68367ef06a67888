/** `pgshard config import`: a pgbouncer.ini as pgdog.toml and users.toml. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Args, Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { renderTable } from '../../src/cli/render.js'
import type { ImportedConfig, ImportNote } from '../../src/config/pgbouncer/import-pgbouncer.js'
import { engineError } from '../../src/errors/engine-error.js'

export interface ImportResult {
  readonly files: readonly string[]
  readonly databases: number
  readonly users: number
  readonly notes: readonly ImportNote[]
}

export default class ConfigImport extends BaseCommand {
  static override summary = 'Turn a pgbouncer.ini into pgdog.toml and users.toml.'
  static override description =
    "Takes its databases, pools, limits, time-outs, TLS and users (auth_file, auth_user, auth_query); %include is followed. What PgBouncer does when a setting is absent is written out. Every setting that has no equal is named with the reason. Passwords stay passwords: users.toml is written for its owner's eyes only."
  static override examples = [
    '<%= config.bin %> config import /etc/pgbouncer/pgbouncer.ini',
    '<%= config.bin %> config import pgbouncer.ini --out-dir conf --force',
    '<%= config.bin %> config import pgbouncer.ini --base /etc/pgbouncer --dry-run',
  ]

  static override args = {
    file: Args.string({ description: 'the pgbouncer.ini', required: true }),
  }

  static override flags = {
    'out-dir': Flags.string({
      default: '.',
      description: 'where pgdog.toml and users.toml are written; made if it is not there',
      helpValue: 'DIR',
    }),
    base: Flags.string({
      description:
        'where relative paths in the file start, as the directory that PgBouncer is started in; default: that of the file',
      helpValue: 'DIR',
    }),
    'dry-run': Flags.boolean({ description: 'print both files, write none', default: false }),
    force: Flags.boolean({ description: 'overwrite files that are there', default: false }),
  }

  async run(): Promise<ImportResult> {
    const { args, flags } = await this.parse(ConfigImport)
    const { importPgbouncer } = await import('../../src/config/pgbouncer/import-pgbouncer.js')
    const base = resolve(flags.base ?? dirname(args.file))
    const imported = importPgbouncer(args.file, base)
    const files = flags['dry-run'] ? [] : this.#write(imported, flags['out-dir'], flags.force)
    if (flags['dry-run']) this.log(`${imported.pgdogToml}\n${imported.usersToml}`)
    this.#print(imported, files)
    const { databases, users, notes } = imported
    return { files, databases, users, notes }
  }

  #write(imported: ImportedConfig, directory: string, force: boolean): string[] {
    const config = join(directory, 'pgdog.toml')
    const users = join(directory, 'users.toml')
    const there = [config, users].filter((path) => existsSync(path))
    if (there.length > 0 && !force) {
      throw engineError('USAGE', {
        message: `${there.join(' and ')} would be overwritten: add --force`,
      })
    }
    mkdirSync(directory, { recursive: true })
    writeFileSync(config, imported.pgdogToml)
    writeFileSync(users, imported.usersToml, { mode: 0o600 })
    return [config, users]
  }

  #print({ databases, users, notes }: ImportedConfig, files: readonly string[]): void {
    const rows = notes.map(({ place, setting, reason }) => [place, setting, reason])
    if (rows.length > 0) {
      this.log(renderTable(['where', 'setting', 'not taken over as it is, because'], rows))
    }
    this.log(`${databases} databases, ${users} users, ${notes.length} settings to look at`)
    if (files[0] !== undefined) {
      this.note(`wrote ${files.join(' and ')}. Next: pgshard config check --config ${files[0]}`)
    }
  }
}

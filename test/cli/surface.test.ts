/** The whole surface of the command line: commands, arguments, flags. A change shows in `surface.txt`; every command explains itself. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { runCli } from '../support/run-cli.js'

interface Flag {
  name: string
  char?: string
  type: string
  required?: boolean
  multiple?: boolean
  hidden?: boolean
  options?: string[]
  default?: unknown
  summary?: string
  description?: string
}

interface Command {
  id: string
  hidden?: boolean
  summary?: string
  description?: string
  examples?: unknown[]
  args: Record<string, { name: string; required?: boolean }>
  flags: Record<string, Flag>
}

const manifest = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
  commands: Record<string, Command>
}
const commands = Object.values(manifest.commands)
  .filter(({ hidden }) => !hidden)
  .sort((a, b) => (a.id < b.id ? -1 : 1))

function describeFlag(flag: Flag): string {
  const parts = [`  --${flag.name}`]
  if (flag.char) parts.push(`-${flag.char}`)
  if (flag.type === 'option') parts.push(flag.options ? flag.options.join('|') : 'VALUE')
  if (flag.required) parts.push('required')
  if (flag.multiple) parts.push('repeated')
  if (flag.default !== undefined && flag.default !== false)
    parts.push(`= ${JSON.stringify(flag.default)}`)
  return parts.join(' ')
}

function describeCommand(command: Command): string[] {
  const args = Object.values(command.args).map(({ name, required }) =>
    required ? name : `[${name}]`,
  )
  const flags = Object.values(command.flags)
    .filter(({ hidden }) => !hidden)
    .map(describeFlag)
  return [[command.id.replaceAll(':', ' '), ...args].join(' '), ...flags.sort(), '']
}

describe('surface', () => {
  test('commands, arguments and flags are those of surface.txt (vitest -u when meant)', async () => {
    const text = commands.flatMap(describeCommand).join('\n')
    await expect(text).toMatchFileSnapshot('surface.txt')
  })

  test('every command has a summary and an example', () => {
    const bare = commands.filter(
      ({ summary, description, examples }) =>
        (summary ?? description ?? '') === '' || (examples ?? []).length === 0,
    )
    expect(bare.map(({ id }) => id)).toEqual([])
  })

  test('every flag says what it does', () => {
    const mute = commands.flatMap(({ id, flags }) =>
      Object.values(flags)
        .filter((flag) => !flag.hidden && !(flag.summary ?? flag.description))
        .map((flag) => `${id} --${flag.name}`),
    )
    expect(mute).toEqual([])
  })

  test('-h is never help, and every command takes --json', () => {
    const wrong = commands.filter(({ flags }) => {
      const host = Object.values(flags).find(({ char }) => char === 'h')
      return !flags['json'] || (host !== undefined && host.name !== 'host')
    })
    expect(wrong.map(({ id }) => id)).toEqual([])
  })
})

describe('help', () => {
  test.each(commands.map(({ id }) => [id.replaceAll(':', ' ')]))('%s --help', async (name) => {
    const { code, stdout, stderr } = await runCli([...name.split(' '), '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('USAGE')
    expect(stdout).toContain('EXAMPLES')
  })

  test('D15: pgshard --help names every topic', async () => {
    const { code, stdout } = await runCli(['--help'])
    expect(code).toBe(0)
    for (const word of new Set(commands.map(({ id }) => id.split(':')[0] as string)))
      expect(stdout).toContain(word)
  })
})

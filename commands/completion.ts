/** `pgshard completion`: the script by which a shell completes our words. */
import { Args, type Command } from '@oclif/core'
import { BaseCommand } from '../src/cli/base-command.js'
import {
  type CompletedCommand,
  completionScript,
  type Shell,
  shells,
} from '../src/cli/completion.js'

export default class Completion extends BaseCommand {
  static override summary =
    'Print the script by which bash, zsh or fish completes commands and flags.'
  static override description =
    'For one session: source <(pgshard completion bash). For all: write it where the shell looks, as the examples do.'
  static override examples = [
    'source <(<%= config.bin %> completion bash)',
    '<%= config.bin %> completion bash > ~/.local/share/bash-completion/completions/pgshard',
    '<%= config.bin %> completion zsh > ~/.zfunc/_pgshard',
    '<%= config.bin %> completion fish > ~/.config/fish/completions/pgshard.fish',
  ]
  static override enableJsonFlag = false

  static override args = {
    shell: Args.string({ description: 'the shell', required: true, options: [...shells] }),
  }

  async run(): Promise<void> {
    const { args } = await this.parse(Completion)
    const commands = this.config.commands
      .filter(({ hidden }) => !hidden)
      .map(completed)
      .sort((a, b) => (a.words < b.words ? -1 : 1))
    this.log(completionScript(args.shell as Shell, this.config.bin, commands).trimEnd())
  }
}

function completed({ id, summary, flags }: Command.Loadable): CompletedCommand {
  const shown = Object.values(flags).filter(({ hidden }) => !hidden)
  return {
    words: id.replaceAll(':', ' '),
    summary: summary ?? '',
    flags: shown.map((flag) => ({
      name: flag.name,
      ...(flag.char === undefined ? {} : { char: flag.char }),
      takesValue: flag.type === 'option',
      values: flag.type === 'option' ? (flag.options ?? []) : [],
      summary: flag.summary ?? flag.description ?? '',
    })),
  }
}

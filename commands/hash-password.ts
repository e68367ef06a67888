/** `pgshard hash-password`: the SCRAM-SHA-256 verifier of a password, for `password_hash` in users.toml. */
import { Args, Flags } from '@oclif/core'
import { BaseCommand } from '../src/cli/base-command.js'

export default class HashPassword extends BaseCommand {
  static override summary =
    'Print the SCRAM-SHA-256 verifier of a password, for password_hash in users.toml.'
  static override description =
    "Without an argument the password is asked for, or read from the first line of stdin; that keeps it out of the shell's history."
  static override examples = [
    '<%= config.bin %> hash-password',
    'printf %s "$PASSWORD" | <%= config.bin %> hash-password',
  ]

  static override args = {
    password: Args.string({
      description: 'the password; visible to others in the list of processes',
    }),
  }

  static override flags = {
    iterations: Flags.integer({
      description: 'rounds of the key derivation',
      default: 4096,
      min: 1,
      max: 10_000_000,
      helpValue: 'N',
    }),
  }

  async run(): Promise<{ verifier: string }> {
    const { args, flags } = await this.parse(HashPassword)
    const { readPassword } = await import('../src/cli/prompt.js')
    const { makeScramVerifier } = await import('../src/auth/scram-verifier.js')
    const password = args.password ?? (await readPassword('Password: '))
    if (password === '') this.error('the password is empty', { exit: 2 })
    const verifier = makeScramVerifier(password, { iterations: flags.iterations })
    this.log(verifier)
    return { verifier }
  }
}

/** Completion of words by the shell: one script for each shell, written from what the commands say of themselves. */

export interface CompletedFlag {
  readonly name: string
  readonly char?: string
  readonly takesValue: boolean
  /** Values that it may have; empty: any, so that files are offered. */
  readonly values: readonly string[]
  readonly summary: string
}

export interface CompletedCommand {
  /** `bench init`, without the program. */
  readonly words: string
  readonly summary: string
  readonly flags: readonly CompletedFlag[]
}

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** Safe inside single quotes of all three shells. */
const plain = (text: string): string =>
  text
    .replace(/['\\`$:[\]]/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

const spelled = ({ name, char }: CompletedFlag): string[] =>
  char === undefined ? [`--${name}`] : [`--${name}`, `-${char}`]

/** First words, each with the second words that may follow. */
function tree(commands: readonly CompletedCommand[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { words } of commands) {
    const [first = '', second] = words.split(' ')
    const list = found.get(first) ?? []
    found.set(first, list)
    if (second !== undefined) list.push(second)
  }
  return found
}

function bash(program: string, commands: readonly CompletedCommand[]): string {
  const topics = [...tree(commands)]
  const flagCases = commands.map(
    ({ words, flags }) => `    '${words}') flags='${flags.flatMap(spelled).join(' ')}' ;;`,
  )
  const valueCases = commands.flatMap(({ words, flags }) =>
    flags
      .filter(({ takesValue, values }) => takesValue && values.length > 0)
      .flatMap((flag) =>
        spelled(flag).map((one) => `    '${words} ${one}') values='${flag.values.join(' ')}' ;;`),
      ),
  )
  const takers = commands.flatMap(({ words, flags }) =>
    flags
      .filter(({ takesValue }) => takesValue)
      .flatMap((flag) => spelled(flag).map((one) => `'${words} ${one}'`)),
  )
  const second = topics
    .filter(([, list]) => list.length > 0)
    .map(([first, list]) => `    '${first}') second='${list.join(' ')}' ;;`)
  return `# Completion of ${program} for bash: source <(${program} completion bash)
_${program}() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  local first="\${COMP_WORDS[1]}" command second='' flags='' values=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${topics.map(([first]) => first).join(' ')}' -- "$word"))
    return
  fi
  case "$first" in
${second.join('\n')}
  esac
  command="$first"
  if [[ -n "$second" && $COMP_CWORD -gt 2 && " $second " == *" \${COMP_WORDS[2]} "* ]]; then
    command="$first \${COMP_WORDS[2]}"
  fi
  case "$command $before" in
${valueCases.join('\n')}
  esac
  if [[ -n "$values" ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
    return
  fi
  case "$command $before" in
    ${takers.join('|')}) return ;;
  esac
  case "$command" in
${flagCases.join('\n')}
  esac
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif ((COMP_CWORD == 2)) && [[ -n "$second" ]]; then
    COMPREPLY=($(compgen -W "$second" -- "$word"))
  fi
}
complete -o bashdefault -o default -F _${program} ${program}
`
}

/** One line of _arguments. */
function zshFlag(flag: CompletedFlag): string {
  const value = flag.values.length > 0 ? `:value:(${flag.values.join(' ')})` : ':value:_files'
  const tail = `[${plain(flag.summary)}]${flag.takesValue ? value : ''}`
  return spelled(flag)
    .map((one) => `'*${one}${tail}'`)
    .join(' ')
}

function zsh(program: string, commands: readonly CompletedCommand[]): string {
  const topics = tree(commands)
  const described = (words: string): string => {
    const own = commands.find((command) => command.words === words)
    return `'${words.split(' ').at(-1)}:${plain(own?.summary ?? `commands of ${words}`)}'`
  }
  const seconds = [...topics].filter(([, list]) => list.length > 0)
  const secondCases = seconds.map(
    ([first, list]) =>
      `    '${first}') seconds=(${list.map((one) => described(`${first} ${one}`)).join(' ')}) ;;`,
  )
  const flagCases = commands.map(
    ({ words, flags }) => `    '${words}') flags=(${flags.map(zshFlag).join(' ')}) ;;`,
  )
  return `#compdef ${program}
# Completion of ${program} for zsh: ${program} completion zsh > ~/.zfunc/_${program}, a directory of your fpath
_${program}() {
  local -a commands seconds flags
  local command="\${words[2]}" depth=2
  commands=(${[...topics.keys()].map((first) => described(first)).join(' ')})
  if ((CURRENT == 2)); then
    _describe -t commands command commands
    return
  fi
  case "$command" in
${secondCases.join('\n')}
  esac
  if ((\${#seconds} && CURRENT == 3)) && [[ "$PREFIX" != -* ]]; then
    _describe -t commands command seconds
  fi
  if ((\${#seconds} && CURRENT > 3)) && [[ -n "\${(M)seconds:#\${words[3]}:*}" ]]; then
    command="$command \${words[3]}"
    depth=3
  fi
  case "$command" in
${flagCases.join('\n')}
  esac
  words=("\${(@)words[depth,-1]}")
  ((CURRENT -= depth - 1))
  _arguments -S "\${flags[@]}" '*:file:_files'
}
compdef _${program} ${program}
`
}

function fishCommand(program: string, { words, summary, flags }: CompletedCommand): string[] {
  const [first = '', second] = words.split(' ')
  const begun = `__fish_seen_subcommand_from ${first}`
  const seen = second === undefined ? begun : `${begun}; and __fish_seen_subcommand_from ${second}`
  const named = `complete -c ${program} -n '${begun}' -a '${second}' -d '${plain(summary)}'`
  const shown = flags.map((flag) => {
    const char = flag.char === undefined ? '' : ` -s ${flag.char}`
    const values = flag.values.length > 0 ? ` -f -a '${flag.values.join(' ')}'` : ''
    const value = flag.takesValue ? ` -r${values}` : ''
    return `complete -c ${program} -n '${seen}' -l ${flag.name}${char}${value} -d '${plain(flag.summary)}'`
  })
  return second === undefined ? shown : [named, ...shown]
}

function fish(program: string, commands: readonly CompletedCommand[]): string {
  const lines = [
    `# Completion of ${program} for fish: ${program} completion fish > ~/.config/fish/completions/${program}.fish`,
  ]
  for (const first of tree(commands).keys()) {
    const own = commands.find(({ words }) => words === first)
    const summary = plain(own?.summary ?? `commands of ${first}`)
    lines.push(`complete -c ${program} -n __fish_use_subcommand -f -a '${first}' -d '${summary}'`)
  }
  for (const command of commands) lines.push(...fishCommand(program, command))
  return `${lines.join('\n')}\n`
}

const writers = { bash, zsh, fish } as const

export const completionScript = (
  shell: Shell,
  program: string,
  commands: readonly CompletedCommand[],
): string => writers[shell](program, commands)

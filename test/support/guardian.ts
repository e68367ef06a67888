/**
 * Ends what a run of tests has started when the run itself dies, even by kill −9: a shell that
 * waits for the end of its standard input, held open by us, and then stops the servers and
 * programs that are noted in the run's directory. A process id is signalled only while its
 * command line still names what was started.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const script = `
run=$1
cat >/dev/null
words() { tr '\\0' ' ' <"/proc/$1/cmdline" 2>/dev/null || ps -ww -o args= -p "$1" 2>/dev/null; }
for note in "$run"/programs/*; do
  [ -f "$note" ] || continue
  pid=\${note##*/}
  case $(words "$pid") in *bin/run.js*) kill -KILL "$pid";; esac
done
for file in "$run"/*/data/*/postmaster.pid; do
  [ -f "$file" ] || continue
  read -r pid <"$file"
  case $(words "$pid") in *"$run"*) kill -QUIT "$pid";; esac
done
i=0
while [ $i -lt 100 ] && ls "$run"/*/data/*/postmaster.pid >/dev/null 2>&1; do sleep 0.1; i=$((i+1)); done
rm -rf "$run"
`

/** Starts the guardian of `run`; end it by closing its standard input. */
export function startGuardian(run: string): ChildProcess {
  mkdirSync(join(run, 'programs'), { recursive: true })
  const child = spawn('/bin/sh', ['-c', script, 'guardian', run], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.unref()
  return child
}

/** Notes a program of ours for the guardian. */
export function noteProgram(run: string, pid: number): () => void {
  const file = join(run, 'programs', String(pid))
  writeFileSync(file, '')
  return () => rmSync(file, { force: true })
}

/**
 * Ends what a run has started when the run itself dies, even by kill −9: a shell that waits for
 * the end of its standard input, held open by us, and then stops the clusters and programs that
 * are noted in the run's directory, and removes it. A process id is signalled only while its
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
for state in "$run"/*/cluster.json; do
  [ -f "$state" ] || continue
  sockets=$(sed -n 's/^  "socketDirectory": "\\(.*\\/pgshard-socket-[A-Za-z0-9]*\\)",$/\\1/p' "$state")
  [ -n "$sockets" ] && rm -rf "$sockets"
done
rm -rf "$run"
`

export interface Guardian {
  /** Notes a program (node bin/run.js …) that must not outlive us; returns how to forget it. */
  note(pid: number): () => void
  /** Lets it go: it ends what is still noted, removes the directory and is gone. */
  release(): Promise<void>
}

/** Starts the guardian of the directory `run`, whose clusters lie one level below. */
export function startGuardian(run: string): Guardian {
  mkdirSync(join(run, 'programs'), { recursive: true })
  const child: ChildProcess = spawn('/bin/sh', ['-c', script, 'guardian', run], {
    cwd: '/',
    detached: true, // Ctrl-C reaches the group of the terminal, and must not end it
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.unref()
  const pipe = child.stdin as (typeof child.stdin & { unref?(): void }) | null
  pipe?.unref?.() // an open pipe alone does not keep us alive
  return {
    note: (pid) => noteProgram(run, pid),
    release: async () => {
      child.ref()
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.stdin?.end()
      if (child.exitCode === null) await ended
    },
  }
}

/** Notes a program for the guardian of `run`, also from another process. */
export function noteProgram(run: string, pid: number): () => void {
  const file = join(run, 'programs', String(pid))
  writeFileSync(file, '')
  return () => rmSync(file, { force: true })
}

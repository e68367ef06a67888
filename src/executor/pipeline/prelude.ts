/** What a server must hear before it carries pipelined requests: statements to be closed, and settings. */
import type { ServerConnection } from '../../server/server-connection.js'
import { queryFrame } from '../../server/server-connection.js'
import { type Settings, settingsDifference } from '../../server/settings.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import { FrameWriter } from '../../wire/frame-writer.js'
import { frontend } from '../../wire/tags.js'

export interface Prelude {
  readonly bytes: Buffer
  /** ReadyForQuery that answer it. */
  readonly syncs: number
  /** To be called when the server has taken it. */
  done(): void
}

/** undefined when there is nothing to say. `settings` are those of a pipeline, without application_name. */
export function preludeFor(server: ServerConnection, settings: Settings): Prelude | undefined {
  if (server.settings.pipelined === settings && server.closing.length === 0) return undefined
  const wanted = withNameOf(server.settings, settings)
  const sql =
    server.settings.pipelined === settings ? '' : settingsDifference(server.settings, wanted)
  const pieces: Buffer[] = []
  if (server.closing.length > 0) {
    pieces.push(closeFrames(server.closing))
    server.traffic.preparedCloses += server.closing.length
    server.closing = []
  }
  if (sql !== '') pieces.push(queryFrame(sql))
  if (pieces.length === 0) return undefined
  return {
    bytes: Buffer.concat(pieces),
    syncs: pieces.length,
    done: () => {
      if (sql !== '') server.settings = wanted
    },
  }
}

/** hard-parts §1.7: the server keeps the application_name that it has. */
function withNameOf(present: Settings, settings: Settings): Settings {
  const name = present.values.get('application_name')
  return name === undefined ? settings : settings.with('application_name', name)
}

function closeFrames(statements: readonly SharedStatement[]): Buffer {
  const writer = new FrameWriter(statements.length * 24 + 8)
  for (const { serverName } of statements)
    writer.begin(frontend.close).byte(0x53).cstring(serverName).end()
  return writer.begin(frontend.sync).end().take()
}

/** One statement with text parameters, by the extended protocol, for questions that carry what a stranger has written. */
import { FrameWriter } from '../wire/frame-writer.js'
import { frontend } from '../wire/tags.js'
import type { ServerResult } from './query-receiver.js'
import type { ServerConnection } from './server-connection.js'

/** @throws the server's error, or SERVER_LOST */
export function queryParameters(
  server: ServerConnection,
  sql: string,
  parameters: readonly string[],
): Promise<ServerResult[]> {
  const writer = new FrameWriter()
  writer.begin(frontend.parse).cstring('').cstring(sql).int16(0).end()
  writer.begin(frontend.bind).cstring('').cstring('').int16(0).int16(parameters.length)
  for (const parameter of parameters) writer.value(parameter)
  writer.int16(0).end()
  writer.begin(frontend.describe).byte(0x50).cstring('').end()
  writer.begin(frontend.execute).cstring('').int32(0).end()
  writer.begin(frontend.sync).end()
  return server.ask(writer.take(), 1)
}

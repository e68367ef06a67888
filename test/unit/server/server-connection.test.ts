/** Whose answer is whose on one connection to a server. */
import { describe, expect, test } from 'vitest'
import type { ServerConnection } from '../../../src/server/server-connection.js'
import { encodeCommandComplete, encodeReadyForQuery } from '../../../src/wire/backend-messages.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { failure, ScriptedServer } from '../executor/pipeline/rig.js'

/** The whole answer to a statement without rows. */
function answer(tag: string): Buffer {
  const writer = new FrameWriter(64)
  encodeCommandComplete(writer, tag)
  encodeReadyForQuery(writer, 0x49)
  return writer.take()
}

const refused = (sqlstate: string): Buffer => {
  const writer = new FrameWriter(16)
  encodeReadyForQuery(writer, 0x49)
  return Buffer.concat([failure(sqlstate), writer.take()])
}

const tagOf = async (results: ReturnType<ServerConnection['query']>): Promise<string | undefined> =>
  (await results).at(-1)?.tag

/** What stands in for a client's relay: it notes what it hears. */
function relayOn(server: ServerConnection): string[] {
  const heard: string[] = []
  server.receiver = {
    rows: () => undefined,
    endOfRead: () => undefined,
    serverLost: () => void heard.push('lost'),
    frame: (tag, buffer, start) => {
      heard.push(String.fromCharCode(tag))
      if (tag === 0x5a) server.ready(buffer[start + 5] as number)
    },
  }
  return heard
}

describe('questions of our own', () => {
  test('two callers who do not wait for each other hear each his own answer', async () => {
    const server = new ScriptedServer()
    const { connection, socket } = server
    const first = tagOf(connection.query('BEGIN'))
    const second = tagOf(connection.query('LISTEN a'))
    expect(socket.writes, 'the second waits for the first').toHaveLength(1)
    server.says(answer('BEGIN'))
    expect(socket.writes).toHaveLength(2)
    server.says(answer('LISTEN'))
    expect(await Promise.all([first, second])).toEqual(['BEGIN', 'LISTEN'])
    expect(connection.isIdle).toBe(true)
  })

  test('the error of one is not that of the next', async () => {
    const server = new ScriptedServer()
    const first = server.connection.query('SELECT 1/0')
    const second = tagOf(server.connection.query('SELECT 2'))
    server.says(refused('22012'))
    await expect(first).rejects.toMatchObject({ sqlstate: '22012' })
    server.says(answer('SELECT 2'))
    expect(await second).toBe('SELECT 2')
  })

  test('a caller is refused while the server owes a client its reply, which goes to the client', async () => {
    const server = new ScriptedServer()
    const heard = relayOn(server.connection)
    server.connection.write(Buffer.from('request'), 1)
    await expect(server.connection.query('ROLLBACK')).rejects.toMatchObject({ code: 'INTERNAL' })
    expect(server.socket.writes).toEqual(['request'])
    server.says(answer('SELECT 1'))
    expect(heard).toEqual(['C', 'Z'])
  })

  test('a client that is given the server before the question has ended hears only what comes behind it', async () => {
    const server = new ScriptedServer()
    const { connection } = server
    const rollback = tagOf(connection.query('ROLLBACK'))
    const heard = relayOn(connection)
    connection.write(Buffer.from('request'), 1)
    const late = connection.query('DISCARD ALL')
    server.says(answer('ROLLBACK'))
    expect(await rollback).toBe('ROLLBACK')
    await expect(late, 'its turn comes in the middle of the request').rejects.toMatchObject({
      code: 'INTERNAL',
    })
    expect(heard).toEqual([])
    server.says(answer('SELECT 1'))
    expect(heard).toEqual(['C', 'Z'])
  })

  test('the loss of the server fails the question, those behind it, and a client that waits for a reply', async () => {
    const server = new ScriptedServer()
    const questions = [server.connection.query('BEGIN'), server.connection.query('LISTEN a')]
    const heard = relayOn(server.connection)
    server.connection.write(Buffer.from('request'), 1)
    const ends = Promise.allSettled(questions)
    server.isLost()
    for (const end of await ends) {
      expect(end).toMatchObject({ status: 'rejected', reason: { code: 'SERVER_LOST' } })
    }
    expect(heard).toEqual(['lost'])
  })

  test('a client that waits for nothing does not hear of a loss that a question hears of', async () => {
    const server = new ScriptedServer()
    const heard = relayOn(server.connection)
    const question = server.connection.query('COMMIT')
    server.isLost()
    await expect(question).rejects.toMatchObject({ code: 'SERVER_LOST' })
    expect(heard).toEqual([])
  })

  test('a drain lets the question end and drops what comes behind it', async () => {
    const server = new ScriptedServer()
    const { connection } = server
    const question = tagOf(connection.query('COMMIT'))
    connection.write(Buffer.from('request'), 1)
    let isDrained = false
    const drained = connection.drain().then(() => {
      isDrained = true
    })
    server.says(answer('COMMIT'))
    expect(await question).toBe('COMMIT')
    expect(isDrained).toBe(false)
    server.says(answer('SELECT 1'))
    await drained
    expect(connection.isIdle).toBe(true)
  })
})

import { describe, expect, it } from 'vitest'
import { engineError, isEngineError } from '../../../src/errors/engine-error.js'
import { Link } from '../../../src/workers/link.js'

interface Any {
  tell: unknown
  ask: unknown
}

function pair(asked: (what: unknown) => unknown) {
  const told: unknown[] = []
  const left: Link<Any, Any> = new Link({
    send: (message) => right.receive(structuredClone(message)),
    told: () => undefined,
    asked: () => undefined,
  })
  const right: Link<Any, Any> = new Link({
    send: (message) => left.receive(structuredClone(message)),
    told: (what) => void told.push(what),
    asked,
  })
  return { left, right, told }
}

describe('the channel between two processes', () => {
  it('answers each question with its own answer, in any order', async () => {
    const waiting: ((value: unknown) => void)[] = []
    const { left } = pair(() => new Promise((resolve) => waiting.push(resolve)))
    const answers = [left.ask('a'), left.ask('b')]
    waiting[1]?.('second')
    waiting[0]?.('first')
    expect(await Promise.all(answers)).toEqual(['first', 'second'])
  })

  it('carries an error with everything that a client is told', async () => {
    const error = engineError(
      'ADMIN_NO_SUCH',
      { kind: 'pool', name: 7, where: 'SHOW POOLS' },
      { detail: 'more' },
    )
    const { left } = pair(() => {
      throw error
    })
    const failure = await left.ask('x').catch((caught: unknown) => caught)
    expect(isEngineError(failure)).toBe(true)
    expect(failure).toMatchObject({
      code: 'ADMIN_NO_SUCH',
      sqlstate: '42704',
      message: 'pool "7" does not exist',
      detail: 'more',
      hint: error.hint,
    })
  })

  it('rejects what waits when the other side has gone, and says nothing any more', async () => {
    const { left, told } = pair(() => new Promise(() => undefined))
    const waits = left.ask('x')
    left.tell('before')
    left.close(engineError('WORKER_GONE', { worker: 3 }))
    left.tell('after')
    await expect(waits).rejects.toMatchObject({ code: 'WORKER_GONE' })
    await expect(left.ask('y')).rejects.toMatchObject({ code: 'WORKER_GONE' })
    expect(told).toEqual(['before'])
  })
})

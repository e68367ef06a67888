import { expect, test } from 'vitest'
import { Story } from '../../../src/demo/story.js'
import { UndoList } from '../../../src/demo/undo-list.js'
import { FakeClock } from '../../support/fake-clock.js'

function tell(isTerminal: boolean, hasColor: boolean) {
  let text = ''
  const clock = new FakeClock()
  const story = new Story({
    write: (more) => {
      text += more
    },
    isTerminal,
    hasColor,
    clock,
  })
  return { story, text: () => text }
}

test('plain text where there is no terminal', async () => {
  const { story, text } = tell(false, false)
  await story.step('First', async () => {
    story.status('working')
    story.check(true, 'it holds')
  })
  expect(text()).toBe('\n 1  First\n    ok: it holds\n    0.0 ms\n')
  expect(story.checks).toBe(1)
})

test('a status is wiped by the next line', () => {
  const { story, text } = tell(true, false)
  story.status('working')
  story.line('done')
  expect(text()).toBe('\r\u001b[K    working\r\u001b[K    done\n')
})

test('colours only where they are wanted', () => {
  const { story, text } = tell(true, true)
  story.check(true, 'it holds')
  expect(text()).toContain('\u001b[32m✓\u001b[39m')
})

test('a check that fails is an error with what was found', () => {
  const { story } = tell(false, false)
  expect(() => story.check(false, 'two is three', '2')).toThrow(
    expect.objectContaining({ code: 'DEMO_CHECK', detail: '2' }),
  )
})

test('undoing goes backwards, once, and past failures', async () => {
  const undo = new UndoList()
  const done: string[] = []
  undo.add('a', () => done.push('a'))
  undo.add('b', () => Promise.reject(new Error('stuck')))
  undo.add('c', () => done.push('c'))
  expect(await undo.run()).toEqual(['b: stuck'])
  expect(await undo.run()).toEqual([])
  expect(done).toEqual(['c', 'a'])
})

/** Lines of keys in TOML texts with every way to hide one. */
import { describe, expect, test } from 'vitest'
import { TomlLines } from '../../../src/config/toml-lines.js'

const text = `# [not.a.table]
a = 1
"quoted key" = "x = 1\\" # no"   # comment = 2
lit = 'c:\\'
multi = """
b = 2
[c]
\\""" still"""""
list = [
  # d = 3
  "]", [1,
  2], { e = 4 },
]
after = 1
[t]
x.y = 1
[[l]]
k = 1
[[l]]
k = '''
k = 3'''
j = 2
[[l.m]]
n = 1
[l.m.o]
p = 1
[ s . "u v" ]
w = 1
`

describe('TomlLines', () => {
  const lines = new TomlLines(text)
  test.each<[string, number]>([
    ['a', 2],
    ['quoted key', 3],
    ['lit', 4],
    ['multi', 5],
    ['list', 9],
    ['after', 14],
    ['t', 15],
    ['t.x.y', 16],
    ['l.0', 17],
    ['l.0.k', 18],
    ['l.1', 19],
    ['l.1.k', 20],
    ['l.1.j', 22],
    ['l.1.m.0', 23],
    ['l.1.m.0.n', 24],
    ['l.1.m.0.o.p', 26],
    ['s.u v', 27],
    ['s.u v.w', 28],
  ])('%s', (path, line) => {
    expect(lines.of(path.split('.'))).toBe(line)
  })

  test('what has no line of its own has that of the table around it', () => {
    expect(lines.of(['list', 2, 'e'])).toBe(9)
    expect(lines.of(['l', 1, 'unknown'])).toBe(19)
  })

  test('what only looks like a key has none', () => {
    for (const name of ['b', 'c', 'd', 'e', 'not']) expect(lines.of([name])).toBeUndefined()
  })
})

/** The floors of the house: layers.mjs names every room, nothing runs up, commands stay thin. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import { rooms } from '../../layers.mjs'
import { filesUnder } from './source-files.js'

const allowed = new Map<string, readonly string[]>(Object.entries(rooms))

/** Rooms that a file of src/ or commands/ imports, types included. */
function importsOf(file: string): { path: string; dynamic: boolean }[] {
  const text = readFileSync(file, 'utf8')
  const pattern = /(?:from|import)\s*(\()?\s*'(\.{1,2}\/[^']+)'/g
  return [...text.matchAll(pattern)].map((match) => ({
    path: normalize(join(dirname(file), match[2] as string)),
    dynamic: match[1] !== undefined,
  }))
}

const roomOf = (path: string): string | undefined => /^src\/([^/]+)\//.exec(path)?.[1]

describe('rooms', () => {
  test('every folder of src is a room of layers.mjs', () => {
    const folders = readdirSync('src', { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && readdirSync(join('src', entry.name)).length > 0)
      .map((entry) => entry.name)
    expect(folders.filter((folder) => !allowed.has(folder))).toEqual([])
  })

  test('ARCHITECTURE.md has a row for every folder of src, and no other', () => {
    const page = readFileSync('ARCHITECTURE.md', 'utf8')
    const rows = [...page.matchAll(/^\| `(\w+)\/` \| .+ \| `([^`]+)` \|$/gm)]
    const described = rows.map(([, room]) => room).filter((room) => room !== 'commands')
    const folders = readdirSync('src', { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && readdirSync(join('src', entry.name)).length > 0)
      .map((entry) => entry.name)
    expect(described.sort()).toEqual(folders.sort())
    const first = rows.filter(([, , file]) => file?.endsWith('.ts'))
    expect(first.filter(([, room, file]) => !existsSync(join('src', room!, file!)))).toEqual([])
  })

  test('a room imports only the rooms named for it', () => {
    const wrong = filesUnder('src', /\.ts$/).flatMap((file) => {
      const room = roomOf(file)
      if (room === undefined) return []
      return importsOf(file)
        .map(({ path }) => roomOf(path))
        .filter(
          (other) => other !== undefined && other !== room && !allowed.get(room)?.includes(other),
        )
        .map((other) => `${file} imports ${other}`)
    })
    expect(wrong).toEqual([])
  })

  test('no room stands on one that stands on it', () => {
    const above = (room: string, seen: readonly string[]): string[] =>
      seen.includes(room)
        ? [[...seen.slice(seen.indexOf(room)), room].join(' → ')]
        : (allowed.get(room) ?? []).flatMap((below) => above(below, [...seen, room]))
    const circles = [...allowed.keys()].flatMap((room) => above(room, []))
    expect(circles).toEqual([])
  })

  test('imports name a file that is there, and its type', () => {
    const missing = [...filesUnder('src', /\.ts$/), ...filesUnder('commands', /\.ts$/)].flatMap(
      (file) =>
        importsOf(file)
          .filter(({ path }) => !existsSync(path.replace(/\.js$/, '.ts')))
          .map(({ path }) => `${file}: ${path}`),
    )
    expect(missing).toEqual([])
  })
})

/** Rooms that any command may use beside its one engine room. */
const shared = new Set(['cli', 'config', 'errors', 'base', 'topology'])

describe('commands', () => {
  const commands = filesUnder('commands', /\.ts$/)

  test('have at most one engine room', () => {
    const wrong = commands
      .map((file) => {
        const engines = importsOf(file)
          .map(({ path }) => roomOf(path))
          .filter((room) => room !== undefined && !shared.has(room))
        return { file, engines: [...new Set(engines)] }
      })
      .filter(({ engines }) => engines.length > 1)
    expect(wrong).toEqual([])
  })

  test('import their engine inside run(), so that --help stays fast', () => {
    const wrong = commands.flatMap((file) => {
      const text = readFileSync(file, 'utf8')
      const pattern = /^import (?!type\b).*?from '([^']+)'/gms
      return [...text.matchAll(pattern)]
        .map((match) => match[1] as string)
        .filter((path) => path.includes('/src/'))
        .filter((path) => !/\/src\/(cli|errors|base)\//.test(path))
        .map((path) => `${file}: ${path}`)
    })
    expect(wrong).toEqual([])
  })

  test('have at most 120 lines beside their flags', () => {
    const long = commands.filter((file) => {
      const text = readFileSync(file, 'utf8').replace(
        / {2}static override flags = \{.*?\n {2}\}/s,
        '',
      )
      return text.split('\n').length > 121
    })
    expect(long).toEqual([])
  })
})

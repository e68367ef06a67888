/** psycopg 3, psycopg2 and asyncpg of Debian: four workers at once do their usual work, directly and through serve. */
import { describe, expect, it } from 'vitest'
import { isPythonModuleMissing } from '../../support/tools.js'
import { runPython, useDriverRig } from './driver-rig.js'

describe('drivers of Python', () => {
  const rig = useDriverRig(['prepared_statements_limit = 40'])

  const sameOf = (file: string) =>
    rig().same(async (target) => {
      const { code, stdout, stderr } = await runPython(file, target)
      expect(stderr, `stderr at ${target.name}\n${stdout.split('\n').slice(-3).join('\n')}`).toBe(
        '',
      )
      expect(code).toBe(0)
      return stdout.split('\n')
    })

  it.skipIf(isPythonModuleMissing('psycopg'))('psycopg 3 does its usual work', async () => {
    const lines = await sameOf('psycopg3.py')
    expect(lines.filter((line) => line.includes('"status"'))).toHaveLength(4)
  })

  it.skipIf(isPythonModuleMissing('psycopg2'))('psycopg2 does its usual work', async () => {
    const lines = await sameOf('psycopg2_work.py')
    expect(lines.filter((line) => line.includes('"status"'))).toHaveLength(4)
  })

  it.skipIf(isPythonModuleMissing('asyncpg'))('asyncpg does its usual work', async () => {
    const lines = await sameOf('asyncpg_work.py')
    expect(lines.filter((line) => line.includes('"and goes on"'))).toHaveLength(4)
  })
})

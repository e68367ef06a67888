/** The JDBC driver of Debian: a Java program, compiled here, does its usual work directly and through serve. */
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { bySize } from '../../support/test-size.js'
import { isFileMissing, isMissing } from '../../support/tools.js'
import { driverFixtures, runProgram, useDriverRig } from './driver-rig.js'

const JAR = '/usr/share/java/postgresql.jar'
const isJdbcMissing = [isMissing('javac'), isMissing('java'), isFileMissing(JAR)].includes(true)

describe.skipIf(isJdbcMissing)('JDBC', () => {
  const rig = useDriverRig(['prepared_statements_limit = 40'])
  const classes = mkdtempSync(join(tmpdir(), 'pgshard-jdbc-'))

  beforeAll(async () => {
    const source = join(driverFixtures, 'JdbcWork.java')
    const compiled = await runProgram('javac', ['-cp', JAR, '-d', classes, source])
    expect(compiled.stderr).toBe('')
    expect(existsSync(join(classes, 'JdbcWork.class'))).toBe(true)
  })

  const ways = [
    ['as it comes', ''],
    [
      'with rewritten batches and names from the first use',
      '&reWriteBatchedInserts=true&prepareThreshold=-1',
    ],
    ['with savepoints of its own', '&autosave=always'],
    ['with rewritten batches', '&reWriteBatchedInserts=true'],
    ['with simple queries', '&preferQueryMode=simple'],
  ] as const

  it.each(ways.slice(0, bySize(3, ways.length)))(
    'does its usual work %s',
    async (_how, options) => {
      const lines = await rig().same(async ({ host, port, user, database }) => {
        const place = [host, String(port), user, database, options]
        const flags = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto']
        const path = [JAR, classes].join(delimiter)
        const done = await runProgram('java', [...flags, '-cp', path, 'JdbcWork', ...place])
        expect(done.stderr).toBe('')
        expect(done.code).toBe(0)
        return done.stdout.split('\n')
      })
      expect(lines.filter((line) => line.endsWith(' status: done'))).toHaveLength(4)
    },
  )
})

/** The tables on the targets, by the source's schema, which is kept in the journal as it was dumped. */
import { incomingTables, makeIncoming } from '../buckets/incoming.js'
import type { JournalObject } from '../journal/journal.js'
import { makeTables } from '../schema/copy-schema.js'
import { dumpSchema } from '../schema/dump-schema.js'
import type { RunContext } from './run-context.js'

/** All that the run makes on the targets, which were bare. */
export const targetSchema: JournalObject = {
  kind: 'target_schema',
  side: 'target',
  shard: 0,
  name: 'all',
}

const majorOf = (version: number): number => Math.floor(version / 10_000)

export async function schemaStep(context: RunContext): Promise<void> {
  const { options, found, journal } = context
  const { source, target, dumpProgram } = options
  if (target.isStaged) {
    context.say(`making tables for the rows that come to ${target.shards.length} shards`)
    await journal.register(incomingTables)
    await context.point('schema:registered')
    return makeIncoming(target, found.plan, journal.run)
  }
  if (found.hasTargetTables) {
    context.say('the tables stand on the targets already')
    return
  }
  if (!(await context.dump())) {
    const first = source.shards[0] as (typeof source.shards)[number]
    const dump = await dumpSchema(first, {
      sourceMajor: majorOf(found.sourceVersion),
      targetMajor: majorOf(found.targetVersion),
      ...(dumpProgram === undefined ? {} : { program: dumpProgram }),
    })
    await journal.keepText('schema', JSON.stringify(dump))
    await context.point('schema:dumped')
  }
  const dump = await context.dump()
  if (!dump) return
  context.say(`making the tables on ${target.shards.length} shards (${dump.by})`)
  await journal.register(targetSchema)
  await context.point('schema:registered')
  await makeTables(target, dump, journal.run)
}

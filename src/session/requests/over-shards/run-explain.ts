/**
 * EXPLAIN of a statement that several shards work for: each explains its part, and the client gets one QUERY PLAN that also
 * says what happens behind the shards.
 */
import type { WriteReply } from '../../../executor/write-run.js'
import type { ExplainPart, ExplainProgram } from '../../../plan/explain-program.js'
import type { Plan } from '../../../plan/plan.js'
import { FrameWriter } from '../../../wire/frame-writer.js'
import { backend } from '../../../wire/tags.js'
import { completeFrame } from '../../answers.js'
import type { SessionCore } from '../../session-core.js'
import { checkShards, requestRole, wayMissing } from '../request-route.js'
import { ending } from './run-split.js'
import type { SeveralRequest } from './several-request.js'
import { checkPortal, runOnServers } from './write-parts.js'

/** @throws what forbids it before anything was sent */
export function runExplain(core: SessionCore, request: SeveralRequest, plan: Plan): void {
  const { explain } = plan
  if (!explain) throw wayMissing(plan)
  checkPortal(request, true)
  const shards = [...new Set(explain.parts.map(({ shard }) => shard))].sort((a, b) => a - b)
  checkShards(core, shards, false)
  ending(core, async () => {
    const helds = await core.held.acquireAll(shards, requestRole(core, [request.statement], [plan]))
    const found: PartPlan[] = []
    let lead: WriteReply | undefined
    for (const part of explain.parts) {
      const held = helds[shards.indexOf(part.shard)]!
      const hasWritten = held.wrote
      const types = held.server.typesHere(request.parameterTypes)
      const frames = request.framesFor(part.sql, 0, types)
      const bytes = lead ? frames : Buffer.concat([request.describingFrames(types), frames])
      const [reply] = await runOnServers(core, [{ held, bytes }], 1)
      // It was only read, whatever the helper takes it for.
      held.wrote = hasWritten
      lead ??= reply
      found.push({ part, lines: reply!.rows.map(textOf) })
    }
    answer(core, request, explain, found, lead)
  })
}

interface PartPlan {
  readonly part: ExplainPart
  readonly lines: readonly string[]
}

/** The one column of a DataRow. */
const textOf = (row: Buffer): string => row.toString('utf8', 11)

const nameOf = ({ shard, what }: ExplainPart): string =>
  what === undefined ? `Shard ${shard}` : `Shard ${shard}, ${what}`

function textPlan({ how, reasons, finish }: ExplainProgram, found: readonly PartPlan[]): string[] {
  return [
    `pgshard ${how}: ${reasons.join('; ')}`,
    ...finish.map((line) => `  ${line}`),
    ...found.flatMap(({ part, lines }) => [
      `  ->  ${nameOf(part)}`,
      ...lines.flatMap((line) => line.split('\n')).map((line) => `        ${line}`),
    ]),
  ]
}

function jsonPlan(program: ExplainProgram, found: readonly PartPlan[]): string[] {
  const { how, reasons, finish } = program
  const plans = found.map(({ part, lines }) => {
    const [own] = JSON.parse(lines.join('\n')) as [{ Plan?: object }]
    return { Shard: part.shard, ...(part.what === undefined ? {} : { Part: part.what }), ...own }
  })
  const root = { 'Node Type': `pgshard ${how}`, Reasons: reasons, Finish: finish, Shards: plans }
  return [JSON.stringify([{ Plan: root }], null, 2)]
}

function answer(
  core: SessionCore,
  request: SeveralRequest,
  program: ExplainProgram,
  found: readonly PartPlan[],
  lead: WriteReply | undefined,
): void {
  const lines = program.format === 'json' ? jsonPlan(program, found) : textPlan(program, found)
  const writer = new FrameWriter()
  for (const line of lines) {
    writer.begin(backend.dataRow).int16(1).value(Buffer.from(line)).end()
  }
  const opening = request.opening(lead?.statement)
  if (opening.length > 0) core.output.append(opening)
  const isShown = request.protocol === 'simple' || request.describesPortal
  if (lead?.columns && isShown) core.output.append(lead.columns)
  core.output.append(writer.take())
  core.conclude(completeFrame('EXPLAIN'))
  const closing = request.closing()
  if (closing.length > 0) core.output.append(closing)
  core.complete()
}

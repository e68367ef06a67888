/** Who sends which tables in which form, and the texts that every server hears. Pure. */
import type { GatheredTable } from '../plan/gather-program.js'
import { quoteLiteral, rawSettingText, type Settings } from '../server/settings.js'
import { listShards } from '../sharding/shard-set.js'
import {
  addKey,
  analyze,
  copyIn,
  copyOut,
  copyOutTogether,
  createCopy,
  createView,
  exactText,
  formatOf,
  type Part,
  type RowFormat,
  setExactText,
  sizeOf,
  takeOwn,
} from './part-sql.js'
import type { SourceTable } from './row-source.js'

export interface Situation {
  readonly shardCount: number
  /** The shard whose server reads its own part where it stands; absent: that server is apart from all that send. */
  readonly ownShard?: number
  /**
   * `none`: the shards' servers are in no transaction, and get one each. `statement`: each statement has a snapshot of its
   * own, so a shard's tables come in one. `transaction`: all statements have the same.
   */
  readonly snapshot: 'none' | 'statement' | 'transaction'
  /** What the client's statement sees. */
  readonly settings: Settings
}

/** One of the loads that follow each other, each of tables that are known only when the one before is done. */
interface Round {
  /** Shards that have begun their transaction. */
  readonly begun: ReadonlySet<number>
  readonly isFirst: boolean
  readonly isLast: boolean
}

const onlyRound: Round = { begun: new Set(), isFirst: true, isLast: true }

export interface Source {
  readonly shard: number
  readonly sql: string
  readonly tables: readonly SourceTable[]
  readonly isTogether: boolean
}

export interface Load {
  readonly loadSql: string
  readonly formats: readonly RowFormat[]
  readonly sources: readonly Source[]
}

const SAVEPOINT = 'pgshard_gather'

/** COPYs of one shard, in what keeps them exact, of one snapshot, and without trace. */
function sourceSql(
  shard: number,
  copies: readonly string[],
  isText: boolean,
  { snapshot, begun, isFirst, isLast }: Situation & Round,
): string {
  const exact = isText ? setExactText() : []
  if (snapshot === 'none') {
    if (copies.length === 1 && !isText && isFirst && isLast) return copies[0] as string
    const begin = begun.has(shard) ? [] : ['BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY']
    return [...begin, ...exact, ...copies, ...(isLast ? ['COMMIT'] : [])].join('; ')
  }
  if (!isText) return copies.join('; ')
  const undo = [`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`, `RELEASE SAVEPOINT ${SAVEPOINT}`]
  return [`SAVEPOINT ${SAVEPOINT}`, ...exact, ...copies, ...undo].join('; ')
}

/** The client's own value again; DEFAULT is what its session began with. */
function restore(name: string, settings: Settings): string {
  const value = settings.values.get(name)
  const raw = value === undefined ? undefined : rawSettingText(value)
  const sql = raw === undefined ? (value ?? 'DEFAULT') : quoteLiteral(raw)
  return `SET LOCAL ${name} TO ${sql}`
}

const restoreText = (settings: Settings): string[] =>
  [...exactText.keys()].map((name) => restore(name, settings))

const SAMPLE = 'default_statistics_target'

/** Statistics of the copies, from a sample that costs little: what matters is how many rows there are. */
export const analyzeSql = (tables: readonly GatheredTable[], settings: Settings): string =>
  [`SET LOCAL ${SAMPLE} TO 20`, ...tables.map(analyze), restore(SAMPLE, settings)].join('; ')

interface Sent {
  readonly table: GatheredTable
  /** Shards that send it. */
  readonly senders: readonly number[]
  readonly isOwn: boolean
}

function partsOf(sent: readonly Sent[], situation: Situation): Part[] {
  const isTogether = (shard: number): boolean =>
    situation.snapshot === 'statement' &&
    sent.filter(({ senders }) => senders.includes(shard)).length > 1
  return sent.map(({ table, senders }) => ({
    table,
    format: senders.some(isTogether) ? 'text' : formatOf(table),
  }))
}

function sourceOf(
  shard: number,
  sent: readonly Sent[],
  parts: readonly Part[],
  situation: Situation & Round,
): Source {
  const numbers = sent.flatMap(({ senders }, number) => (senders.includes(shard) ? [number] : []))
  const own = numbers.map((number) => parts[number] as Part)
  const isTogether = situation.snapshot === 'statement' && own.length > 1
  const isText = own.some(({ format }) => format === 'text')
  return {
    shard,
    sql: sourceSql(
      shard,
      isTogether ? [copyOutTogether(own)] : own.map(copyOut),
      isText,
      situation,
    ),
    tables: numbers.map((number, index) => ({
      number,
      format: own[index]?.format ?? 'text',
      columns: own[index]?.table.columns.length ?? 0,
    })),
    isTogether,
  }
}

const BEGIN = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE'

/** `views`: name and query, in the order in which they can be made. */
export function planLoad(
  tables: readonly GatheredTable[],
  views: readonly { readonly name: string; readonly sql: string }[],
  situation: Situation,
  round = onlyRound,
): Load {
  const { shardCount, ownShard } = situation
  const all = tables.map((table): Sent => {
    const shards = listShards(table.shards, shardCount)
    return {
      table,
      senders: shards.filter((shard) => shard !== ownShard),
      isOwn: ownShard !== undefined && shards.includes(ownShard),
    }
  })
  const sent = all.filter(({ senders }) => senders.length > 0)
  const own = all.filter(({ isOwn }) => isOwn).map(({ table }) => table)
  const parts = partsOf(sent, situation)
  const isText = parts.some(({ format }) => format === 'text')
  const shards = [...new Set(sent.flatMap(({ senders }) => senders))].sort((a, b) => a - b)
  return {
    formats: parts.map(({ format }) => format),
    sources: shards.map((shard) => sourceOf(shard, sent, parts, { ...situation, ...round })),
    loadSql: [
      ...(round.isFirst ? [BEGIN] : []),
      ...(isText ? setExactText() : []),
      ...tables.map(createCopy),
      ...own.map(takeOwn),
      ...(own.length > 0 ? [sizeOf(own)] : []),
      ...parts.map(copyIn),
      ...tables.flatMap(addKey),
      ...views.map(createView),
      ...(isText ? restoreText(situation.settings) : []),
    ].join('; '),
  }
}

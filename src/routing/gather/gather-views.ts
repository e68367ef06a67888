/** Views over tables that are gathered: what is beneath them is gathered too, and they are made anew over the copies. */
import type { CatalogRelation } from '../../catalog/catalog.js'
import type { GatheredView } from '../../plan/gather-program.js'
import { blankQualifiers } from '../../sql/blank-qualifiers.js'
import { type QualifiedName, readGatherFacts } from '../../sql/gather-facts.js'
import type { Level } from '../../sql/statement.js'
import { levelsOf, type Places, placeOfRelation } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import type { Table } from './gather-tables.js'

export interface WithViews {
  readonly tables: readonly Table[]
  readonly references: readonly Table[]
  readonly views: readonly Table[]
  /** Views beneath views, which the statement does not name. */
  readonly nested: readonly Pick<Table, 'relation'>[]
  readonly definitions: readonly GatheredView[]
  readonly usesClock: boolean
}

/** Some table of the statement is a view that no single shard can answer, and none is refused for another reason. */
export function readsShardedView(places: Places): boolean {
  let found = false
  for (const resolved of places.values()) {
    for (const { place } of resolved) {
      if (place.kind !== 'refused') continue
      if (!place.isView) return false
      found = true
    }
  }
  return found
}

const isShardedView = ({ place }: Table): boolean =>
  place.kind === 'refused' && place.isView === true

/** Inner ones first. */
function viewsBeneath(
  view: CatalogRelation,
  world: RoutingWorld,
  found: CatalogRelation[] = [],
): CatalogRelation[] {
  for (const oid of view.reads) {
    const beneath = world.catalog?.byOid(oid)
    if (beneath?.kind === 'view') viewsBeneath(beneath, world, found)
  }
  if (!found.includes(view)) found.push(view)
  return found
}

function badView(view: CatalogRelation, world: RoutingWorld): string | undefined {
  const { catalog } = world
  const hidden = catalog?.hiddenCode
  if (view.definition === undefined || !hidden || hidden.relations.has(view.oid)) {
    return `view "${view.name}", which calls more than PostgreSQL's own functions,`
  }
  const beneath = view.reads.map((oid) => catalog?.byOid(oid))
  if (beneath.includes(undefined)) return `view "${view.name}", which reads system catalogs,`
  if (beneath.some((one) => one?.rowSecurity)) {
    return `view "${view.name}" over tables with row security`
  }
  return undefined
}

const clocks = /\bnow\(\)|\b(?:CURRENT_(?:DATE|TIME|TIMESTAMP)|LOCALTIME(?:STAMP)?)\b/

/** The text of a view with the schemas of `relations` blanked out. */
function blanked(text: string, relations: readonly CatalogRelation[]): string | undefined {
  const facts = readGatherFacts(text)
  if (!facts) return undefined
  const isCopied = ({ schema, name }: QualifiedName): boolean =>
    relations.some((one) => one.schema === schema && one.name === name)
  const uses = levelsOf(facts.root).flatMap((level: Level) =>
    level.relations.map((use) => facts.nameOf(use)),
  )
  const names = [...uses, ...facts.columns].filter(isCopied)
  const told = names.map((one) =>
    facts.ctes.has(one.name) ? { ...one, becomes: 'pg_temp.' } : one,
  )
  return blankQualifiers(text, told, true)
}

function definitionsOf(
  views: readonly CatalogRelation[],
  tables: readonly Table[],
  references: readonly Table[],
): GatheredView[] | undefined {
  const copied = [...tables.map(({ relation }) => relation), ...views]
  const all = [...copied, ...references.map(({ relation }) => relation)]
  const made: GatheredView[] = []
  for (const { name, definition = '' } of views) {
    const text = definition.replace(/;\s*$/, '')
    const sql = blanked(text, copied)
    const sqlWithReferences = blanked(text, all)
    if (sql === undefined || sqlWithReferences === undefined) return undefined
    made.push({ name, sql, sqlWithReferences })
  }
  return made
}

/** The tables of a statement with those beneath its views, or why that cannot be. */
export function viewsOver(named: readonly Table[], world: RoutingWorld): WithViews | string {
  const views = named.filter(isShardedView)
  const all = new Map<number, Table>()
  for (const table of named) if (!isShardedView(table)) all.set(table.relation.oid, table)
  for (const { relation } of views) {
    for (const beneath of world.catalog?.tablesBeneath(relation) ?? []) {
      const place = placeOfRelation(beneath, world)
      const known = all.get(beneath.oid)
      all.set(beneath.oid, { uses: [], relation: beneath, place, ...known, isWhole: true })
    }
  }
  const relations = [...new Set(views.flatMap(({ relation }) => viewsBeneath(relation, world)))]
  const bad = relations.map((view) => badView(view, world)).find((reason) => reason !== undefined)
  if (bad !== undefined) return bad
  const tables = [...all.values()].filter(({ place }) => place.kind !== 'reference')
  const references = [...all.values()].filter(({ place }) => place.kind === 'reference')
  const definitions = definitionsOf(relations, tables, references)
  if (!definitions) return 'a view whose text cannot be read'
  return {
    tables,
    references,
    views,
    nested: relations
      .filter((view) => !views.some(({ relation }) => relation === view))
      .map((relation) => ({ relation })),
    definitions,
    usesClock: relations.some(({ definition = '' }) => clocks.test(definition)),
  }
}

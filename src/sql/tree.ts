/** Walking PostgreSQL's parse trees without knowing every node. */
import type { Node } from './parse.js'

/** The tag of a node (`SelectStmt`) and its body. */
export function tagOf(node: Node): [string, unknown] {
  for (const tag in node) return [tag, (node as Record<string, unknown>)[tag]]
  return ['', undefined]
}

const isNodeTag = (key: string): boolean => key.charCodeAt(0) >= 65 && key.charCodeAt(0) <= 90

/**
 * Calls `visit` for every tagged node beneath `value`, outermost first; a false answer keeps out of that node.
 * Untagged bodies (RangeVar of an INSERT) are walked through without a call.
 */
export function walkTree(value: unknown, visit: (tag: string, body: unknown) => boolean): void {
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) {
    for (const item of value) walkTree(item, visit)
    return
  }
  for (const [key, inner] of Object.entries(value)) {
    if (inner === null || typeof inner !== 'object') continue
    if (isNodeTag(key) && !visit(key, inner)) continue
    walkTree(inner, visit)
  }
}

/** The text of a String node, or undefined. */
export function stringOf(node: Node | undefined): string | undefined {
  return node && 'String' in node ? (node.String.sval ?? '') : undefined
}

export function stringsOf(nodes: readonly Node[] | undefined): string[] {
  return (nodes ?? []).map((node) => stringOf(node) ?? '*')
}

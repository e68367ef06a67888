/** Calls of a statement that reads no table: the functions with what is known of their arguments. */
import type { FuncCall, Node } from './parse.js'
import { readValue, type SlotFinder } from './predicate.js'
import type { CalledFunction } from './statement.js'
import { stringsOf, walkTree } from './tree.js'

/** In the order of the text; an argument that is no value of the statement's own is undefined. */
export function calledFunctions(node: Node, slots: SlotFinder): readonly CalledFunction[] {
  const calls: CalledFunction[] = []
  walkTree(node, (tag, body) => {
    if (tag === 'FuncCall') calls.push(calledFunction(body as FuncCall, slots))
    return true
  })
  return calls
}

export function calledFunction(call: FuncCall, slots: SlotFinder): CalledFunction {
  const path = stringsOf(call.funcname)
  const schema = path.length > 1 ? path.at(-2) : undefined
  return {
    ...(schema === undefined ? {} : { schema }),
    name: path.at(-1) ?? '',
    args: call.func_variadic ? [] : (call.args ?? []).map((arg) => readValue(arg, slots)),
  }
}

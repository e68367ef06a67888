/** What the titles of tests say that they prove, read from their source: nothing is run. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'

/** `D84, D85: …` or `D84–D86: …`: the rows at the head of a title. */
const ROW = '[LDBXJO]\\d+'
const HEAD = new RegExp(`^(${ROW}(?:\\s*(?:,|and|[–-])\\s*${ROW})*)\\s*[:)]?(?:\\s|$)`)
/** Functions that end a test when what they check does not hold. */
const CHECKS = /^(expect|assert|waitFor)/

/** Every row between two of one letter, both included. */
function rowsBetween(from, to) {
  const [first, last] = [from, to].map((row) => Number(row.slice(1)))
  if (from[0] !== to[0] || last < first) return [from, to]
  return Array.from({ length: last - first + 1 }, (_, i) => `${from[0]}${first + i}`)
}

/** The rows that a list like `D1, D3–D5` names. */
export function rowsOf(list) {
  return list.split(/\s*(?:,|and)\s*/).flatMap((part) => {
    const [from, to] = part.trim().split(/\s*[–-]\s*/)
    return to === undefined ? [from] : rowsBetween(from, to)
  })
}

/** Rows at the head of a title; none when it begins with other words. */
export function rowsOfTitle(title) {
  const head = HEAD.exec(title)
  return head ? rowsOf(head[1]) : []
}

function textOf(node) {
  if (node === undefined) return undefined
  if (ts.isStringLiteralLike(node)) return node.text
  return ts.isTemplateExpression(node) ? node.head.text : undefined
}

/** `it.skipIf(x).each(rows)` → name `it`, marks `skipIf`, `each`. */
function chainOf(callee) {
  const marks = []
  let node = callee
  for (;;) {
    if (ts.isIdentifier(node)) return { name: node.text, marks }
    if (ts.isPropertyAccessExpression(node)) {
      marks.push(node.name.text)
      node = node.expression
    } else if (ts.isCallExpression(node)) node = node.expression
    else return { name: '', marks }
  }
}

const calledName = ({ expression }) =>
  ts.isIdentifier(expression)
    ? expression.text
    : ts.isPropertyAccessExpression(expression)
      ? expression.name.text
      : ''

/** Names of what a piece of code calls, the roots of chains (`expect(x).resolves.toBe()`) included. */
function callsIn(node) {
  const calls = new Set()
  const visit = (child) => {
    if (ts.isCallExpression(child)) {
      calls.add(calledName(child))
      calls.add(chainOf(child.expression).name)
    }
    ts.forEachChild(child, visit)
  }
  visit(node)
  return calls
}

/** Each function of a file by name, with what it calls: to look through helpers. */
function functionsOf(source, functions) {
  const add = (name, body) => {
    if (name && body) functions.set(name, (functions.get(name) ?? []).concat([callsIn(body)]))
  }
  const isFunction = (node) => node && (ts.isArrowFunction(node) || ts.isFunctionExpression(node))
  const visit = (node) => {
    if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node))
      add(node.name?.text, node.body)
    else if (ts.isVariableDeclaration(node) && isFunction(node.initializer))
      add(node.name.text, node.initializer.body)
    else if (ts.isPropertyAssignment(node) && isFunction(node.initializer))
      add(node.name.text, node.initializer.body)
    ts.forEachChild(node, visit)
  }
  visit(source)
}

/** True when what is called checks something, itself or through helpers of the tests. */
function checks(calls, functions, seen = new Set()) {
  for (const name of calls) {
    if (CHECKS.test(name)) return true
    if (seen.has(name)) continue
    seen.add(name)
    for (const inner of functions.get(name) ?? []) if (checks(inner, functions, seen)) return true
  }
  return false
}

const isSkipped = (marks) => marks.includes('skip') || marks.includes('todo')
/** Run only where a program, a version or a size of tests is there. */
const isConditional = (marks) => marks.includes('skipIf') || marks.includes('runIf')

/** Tests of one file, each with its rows (its suites' included). */
function testsOf(source, file, functions) {
  const found = []
  const suites = []
  const visit = (node) => {
    if (!ts.isCallExpression(node)) return ts.forEachChild(node, visit)
    const { name, marks } = chainOf(node.expression)
    const title = textOf(node.arguments[0])
    const isCase = /^(test|it|describe)$/.test(name) && title !== undefined
    if (!isCase) return ts.forEachChild(node, visit)
    const here = {
      rows: rowsOfTitle(title),
      skipped: isSkipped(marks),
      conditional: isConditional(marks),
    }
    if (name === 'describe') {
      suites.push(here)
      ts.forEachChild(node, visit)
      suites.pop()
      return
    }
    const body = node.arguments.findLast(
      (one) => ts.isArrowFunction(one) || ts.isFunctionExpression(one) || ts.isIdentifier(one),
    )
    const calls =
      body === undefined ? new Set() : ts.isIdentifier(body) ? new Set([body.text]) : callsIn(body)
    found.push({
      file,
      title,
      rows: [...new Set([...suites, here].flatMap(({ rows }) => rows))],
      skipped: [...suites, here].some(({ skipped }) => skipped),
      conditional: [...suites, here].some(({ conditional }) => conditional) || calls.has('skip'),
      checks: checks(calls, functions),
    })
  }
  visit(source)
  return found
}

/** Every test under a folder: `{ file, title, rows, skipped, conditional, checks }`. */
export function readTests(root, folder = 'test') {
  const files = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  const functions = new Map()
  const sources = files.map((file) => {
    const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.ES2023)
    functionsOf(source, functions)
    return { file, source }
  })
  return sources
    .filter(({ file }) => file.endsWith('.test.ts'))
    .flatMap(({ file, source }) => testsOf(source, relative(root, file), functions))
}

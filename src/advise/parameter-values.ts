/** Values for $1, $2, … of statements whose values nobody wrote down: of the right type, and no two alike. */
import type { StatementFacts } from './workload/statement-facts.js'

const integers = new Set([20, 21, 23, 26, 700, 701, 1700])

function sampleOf(type: number | undefined, number: number): string {
  if (type === undefined || integers.has(type)) return String(100 + number)
  switch (type) {
    case 16:
      return 'true'
    case 114:
    case 3802:
      return '{}'
    case 1082:
      return '2026-01-01'
    case 1083:
      return '12:00:00'
    case 1114:
      return '2026-01-01 12:00:00'
    case 1184:
      return '2026-01-01 12:00:00+00'
    case 1186:
      return '1 day'
    case 2950:
      return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
    default:
      return `value-${number}`
  }
}

const anyOf = (sql: string, number: number): boolean =>
  new RegExp(`\\b(?:any|all)\\s*\\(\\s*\\$${number}(?!\\d)`, 'i').test(sql)

/** An array gets two members: a list of one would flatter. */
function arrayOf(type: number | undefined, number: number): string {
  return `{${sampleOf(type, number)},${sampleOf(type, number + 1000)}}`
}

export function parameterValues(sql: string, facts: StatementFacts | undefined): string[] {
  const bare = sql.replace(/'[^']*'|"[^"]*"|--[^\n]*|\/\*.*?\*\//gs, ' ')
  const numbers = [...bare.matchAll(/(?<![\w$])\$(\d+)/g)].map(([, digits]) => Number(digits))
  const count = Math.max(0, ...numbers)
  return Array.from({ length: count }, (_, index) => {
    const number = index + 1
    const type = facts?.parameterTypes.get(number)
    return anyOf(bare, number) ? arrayOf(type, number) : sampleOf(type, number)
  })
}

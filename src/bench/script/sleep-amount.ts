/** How long `\sleep` waits: a number, or a variable that holds one. Source followed: evaluateSleep in pgbench.c. */
import type { Variables } from './variables.js'

/** Microseconds, or what is wrong. */
export function sleepAmount(amount: string, unitUs: number, variables: Variables): number | string {
  if (!amount.startsWith(':')) return Number.parseInt(amount, 10) * unitUs
  const name = amount.slice(1)
  const text = variables.text(name)
  if (text === undefined) return `sleep: undefined variable "${name}"`
  const number = Number.parseInt(text, 10)
  if (Number.isNaN(number)) return `sleep: invalid sleep time "${text}" for variable "${name}"`
  return number * unitUs
}

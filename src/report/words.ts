/** Numbers in a report's text. Pure. */

const units = ['B', 'kB', 'MB', 'GB', 'TB']

export const countWords = (value: number): string => Math.round(value).toLocaleString('en-US')

export function sizeWords(value: number): string {
  let [amount, unit] = [value, 0]
  while (amount >= 1000 && unit < units.length - 1) {
    amount /= 1000
    unit++
  }
  return `${amount.toFixed(unit === 0 || amount >= 100 ? 0 : 1)} ${units[unit]}`
}

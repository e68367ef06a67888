/** Floats as PostgreSQL writes them with extra_float_digits = 1: the fewest digits that say which value it is. */

/** Exponents from which the scientific form is used. */
const MOST_FIXED = { float4: 6, float8: 15 } as const

/** The fewest significant digits by which a float4 is told from its neighbours. */
function shortFloat4(value: number): string {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toExponential(digits - 1)
    if (Math.fround(Number(text)) === value) return text
  }
  return value.toExponential(8)
}

export function textOfFloat(value: number, type: 'float4' | 'float8'): string {
  if (!Number.isFinite(value)) return String(value)
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const short = type === 'float4' ? shortFloat4(value) : value.toExponential()
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(short)
  const [sign, exponent] = [match?.[1] ?? '', Number(match?.[4])]
  const digits = `${match?.[2]}${match?.[3] ?? ''}`
  if (exponent < -4 || exponent >= MOST_FIXED[type]) {
    const rest = digits.length > 1 ? `.${digits.slice(1)}` : ''
    const power = String(Math.abs(exponent)).padStart(2, '0')
    return `${sign}${digits[0]}${rest}e${exponent < 0 ? '-' : '+'}${power}`
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  const fraction = digits.slice(exponent + 1)
  return fraction === '' ? sign + whole : `${sign}${whole}.${fraction}`
}

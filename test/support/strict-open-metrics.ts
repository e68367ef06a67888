/**
 * A strict reader of OpenMetrics 1.0, written after its ABNF and prose: whatever a parser may refuse throws here. Deliberately
 * not by the library that writes the text.
 */
export interface ReadFamily {
  readonly name: string
  readonly type: string
  readonly help: string | undefined
  readonly samples: readonly ReadSample[]
}

export interface ReadSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/
const VALUE = /^[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|Inf|NaN)$/i
/** Suffixes of samples that each type allows; '' is the name itself. */
const suffixes: Readonly<Record<string, readonly string[]>> = {
  gauge: [''],
  unknown: [''],
  counter: ['_total', '_created'],
  histogram: ['_bucket', '_count', '_sum', '_created'],
  summary: ['', '_count', '_sum', '_created'],
  info: ['_info'],
  stateset: [''],
}

interface Open {
  name: string
  type: string
  help: string | undefined
  samples: ReadSample[]
}

/** @throws Error with the line that breaks a rule */
export function readOpenMetrics(text: string): ReadFamily[] {
  if (!text.endsWith('# EOF\n')) throw new Error('the text must end with "# EOF" and a line feed')
  if (text.includes('\r')) throw new Error('a carriage return')
  const lines = text.slice(0, -'# EOF\n'.length).split('\n')
  if (lines.pop() !== '') throw new Error('"# EOF" must stand on a line of its own')
  const families = new Map<string, Open>()
  let current: Open | undefined
  for (const line of lines) {
    const descriptor = /^# (TYPE|HELP|UNIT) (\S+)(?: (.*))?$/.exec(line)
    if (descriptor) current = describe(families, current, descriptor)
    else if (line.startsWith('#') || line === '') throw new Error(`not allowed: ${line}`)
    else current = addSample(families, current, line)
  }
  for (const family of families.values()) checkFamily(family)
  return [...families.values()]
}

function describe(
  families: Map<string, Open>,
  current: Open | undefined,
  match: RegExpExecArray,
): Open {
  const [line, kind, name = '', rest = ''] = match
  if (!NAME.test(name)) throw new Error(`not a name: ${line}`)
  let family = current
  if (family?.name !== name) {
    if (families.has(name)) throw new Error(`the family is not in one piece: ${line}`)
    family = { name, type: 'unknown', help: undefined, samples: [] }
    families.set(name, family)
  } else if (family.samples.length > 0) throw new Error(`a descriptor behind samples: ${line}`)
  if (kind === 'HELP') {
    if (family.help !== undefined) throw new Error(`a second HELP: ${line}`)
    if (/\\(?![\\n"])|(?<!\\)(?:\\\\)*"/.test(rest)) throw new Error(`HELP is not escaped: ${line}`)
    family.help = rest
  } else if (kind === 'TYPE') {
    if (!suffixes[rest]) throw new Error(`unknown type: ${line}`)
    family.type = rest
  }
  return family
}

function addSample(families: Map<string, Open>, current: Open | undefined, line: string): Open {
  const match = /^([^\s{]+)(\{.*\})? (\S+)$/.exec(line)
  if (!match) throw new Error(`not a sample: ${line}`)
  const [, name = '', labelText, value = ''] = match
  if (!NAME.test(name)) throw new Error(`not a name: ${line}`)
  if (!VALUE.test(value)) throw new Error(`not a number: ${line}`)
  const family = current && belongs(current, name) ? current : undefined
  if (!family) throw new Error(`a sample without its family: ${line}`)
  if (families.get(family.name) !== family)
    throw new Error(`the family is not in one piece: ${line}`)
  family.samples.push({ name, labels: labelsOf(labelText, line), value: numberOf(value) })
  return family
}

const belongs = (family: Open, name: string): boolean =>
  (suffixes[family.type] ?? []).some((suffix) => family.name + suffix === name)

function labelsOf(text: string | undefined, line: string): Record<string, string> {
  const labels: Record<string, string> = {}
  if (text === undefined) return labels
  const inner = text.slice(1, -1)
  const pair = /([^=,]+)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y
  let at = 0
  while (at < inner.length) {
    pair.lastIndex = at
    const match = pair.exec(inner)
    if (!match) throw new Error(`labels cannot be read: ${line}`)
    const [whole, name = '', value = ''] = match
    if (!LABEL.test(name) || name.startsWith('__')) throw new Error(`not a label: ${line}`)
    if (Object.hasOwn(labels, name)) throw new Error(`a label twice: ${line}`)
    labels[name] = value.replace(/\\(.)/g, (_, sign) => (sign === 'n' ? '\n' : sign))
    at += whole.length
  }
  if (inner.endsWith(',')) throw new Error(`a comma too many: ${line}`)
  return labels
}

const numberOf = (text: string): number => {
  if (/inf$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity
  return Number(text)
}

function checkFamily(family: Open): void {
  const seen = new Set<string>()
  for (const sample of family.samples) {
    const key = JSON.stringify([sample.name, Object.entries(sample.labels).sort()])
    if (seen.has(key)) throw new Error(`a sample twice: ${key}`)
    seen.add(key)
    const isCount = family.type === 'counter' || family.type === 'histogram'
    if (isCount && !(sample.value >= 0)) throw new Error(`a count below 0: ${key}`)
  }
  if (family.type === 'counter' && family.name.endsWith('_total'))
    throw new Error(`a counter whose family ends in _total: ${family.name}`)
  if (family.type === 'histogram') checkHistogram(family)
}

interface Series {
  readonly buckets: [number, number][]
  count?: number
  sum?: number
}

function checkHistogram(family: Open): void {
  const series = new Map<string, Series>()
  for (const sample of family.samples) {
    const { le: _, ...others } = sample.labels
    const key = JSON.stringify(Object.entries(others).sort())
    const one = series.get(key) ?? { buckets: [] }
    series.set(key, one)
    addToSeries(one, sample)
  }
  for (const [key, one] of series) checkSeries(key, one)
}

function addToSeries(series: Series, { name, labels, value }: ReadSample): void {
  if (name.endsWith('_count')) series.count = value
  else if (name.endsWith('_sum')) series.sum = value
  else {
    const le = labels['le'] ?? ''
    if (le !== '+Inf' && !/^\d+\.\d+$/.test(le)) throw new Error(`le is not canonical: ${le}`)
    series.buckets.push([numberOf(le), value])
  }
}

function checkSeries(key: string, { buckets, count, sum }: Series): void {
  if (buckets.at(-1)?.[0] !== Number.POSITIVE_INFINITY) throw new Error(`no bucket +Inf: ${key}`)
  if (buckets.at(-1)?.[1] !== count) throw new Error(`+Inf is not the count: ${key}`)
  if (sum === undefined) throw new Error(`no sum: ${key}`)
  for (const [at, [le, value]] of buckets.entries()) {
    const [belowLe, below] = buckets[at - 1] ?? [Number.NEGATIVE_INFINITY, 0]
    if (belowLe >= le || below > value) throw new Error(`buckets do not rise: ${key}`)
  }
}

/** The value of the one sample with these labels among its own. */
export function sampleValue(
  families: readonly ReadFamily[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const found = families
    .flatMap(({ samples }) => samples)
    .filter(
      (sample) =>
        sample.name === name &&
        Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )
  if (found.length === 0) throw new Error(`no sample ${name} ${JSON.stringify(labels)}`)
  return found.reduce((sum, { value }) => sum + value, 0)
}

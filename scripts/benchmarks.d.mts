/** The page of docs/benchmarks.md, for the rule that holds it against bench/results. */
export function page(): string

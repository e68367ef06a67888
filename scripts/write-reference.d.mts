/** Pages of the reference, for the rules that hold them against their sources. */
export function configPage(sections: object): string
export function errorsPage(errors: { catalogue: object }): string
export function metricsPage(families: object, figures: object, buckets: object): string
export function cliPage(manifest: object): string
export function manPage(manifest: object, version: string): string

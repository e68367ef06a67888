import type { CatalogueEntry } from '../catalogue-entry.js'

export const routingErrors = {} as const satisfies Record<string, CatalogueEntry>

import type { CatalogueEntry } from '../catalogue-entry.js'

export const connectErrors = {} as const satisfies Record<string, CatalogueEntry>

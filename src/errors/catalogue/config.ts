import type { CatalogueEntry } from '../catalogue-entry.js'

export const configErrors = {} as const satisfies Record<string, CatalogueEntry>

import type { CatalogueEntry } from '../catalogue-entry.js'

export const reshardErrors = {} as const satisfies Record<string, CatalogueEntry>

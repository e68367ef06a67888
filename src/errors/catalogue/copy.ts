import type { CatalogueEntry } from '../catalogue-entry.js'

export const copyErrors = {} as const satisfies Record<string, CatalogueEntry>

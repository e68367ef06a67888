import type { CatalogueEntry } from '../catalogue-entry.js'

export const benchErrors = {} as const satisfies Record<string, CatalogueEntry>

import type { CatalogueEntry } from '../catalogue-entry.js'

export const sessionErrors = {} as const satisfies Record<string, CatalogueEntry>
